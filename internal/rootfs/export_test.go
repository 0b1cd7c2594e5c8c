package rootfs

import "context"

// Lock is what changes of names wait for.
func (s *Store) Lock(ctx context.Context) (func(), error) { return s.lock(ctx) }

// What one tenant may have.
const (
	MostOwned     = mostOwned
	MostLeft      = mostLeft
	MostOwnedSize = mostOwnedSize
)
