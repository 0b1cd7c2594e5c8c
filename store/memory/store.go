package memory

import (
	"context"
	"sync"

	"github.com/cove-sandbox/cove"
)

// Store is a cove.Store that forgets everything when the process ends. It is
// safe for concurrent use.
type Store struct {
	mu     sync.RWMutex
	closed bool // guarded by mu, like all that follows

	sessions  table[cove.Session]
	holders   map[liveKey]cove.ID
	keys      table[cove.Key]
	hashes    map[string]cove.ID
	tenants   table[cove.Tenant]
	usage     map[string]cove.Consumption
	snapshots table[cove.Snapshot]
	volumes   table[cove.SavedVolume]
	runs      table[cove.Run]
	messages  table[cove.Message]
	claims    map[claimKey]cove.Claim
}

var _ cove.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store {
	return &Store{
		holders: map[liveKey]cove.ID{},
		hashes:  map[string]cove.ID{},
		usage:   map[string]cove.Consumption{},
		claims:  map[claimKey]cove.Claim{},
	}
}

// Close makes every other method fail with Unavailable. It is idempotent.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// usable reports why nothing can be done; s.mu is held.
func (s *Store) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return cove.Wrap(cove.CodeOf(err), err, "%s", cove.MessageOf(err))
	}
	if s.closed {
		return cove.Errorf(cove.Unavailable, "the store is closed")
	}
	return nil
}

// change runs do with the store to itself.
func (s *Store) change(ctx context.Context, do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	return do()
}
