package memory

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

// PutKey implements cove.KeyStore. A hash that another key has is Conflict.
func (s *Store) PutKey(ctx context.Context, k *cove.Key) error {
	if len(k.Hash) == 0 {
		return cove.InvalidField("hash", "is empty")
	}
	r, err := newRow(k, field{"id", string(k.ID)}, field{"tenant", k.Tenant})
	if err != nil {
		return err
	}
	return s.change(ctx, func() error {
		if other, taken := s.hashes[string(k.Hash)]; taken && other != k.ID {
			return cove.Errorf(cove.Conflict, "another key has the same secret; make a new one")
		}
		if old := s.keys.get(r.id); old != nil {
			delete(s.hashes, string(old.value.Hash))
		}
		s.hashes[string(r.value.Hash)] = k.ID
		s.keys.put(r)
		return nil
	})
}

// KeyByHash implements cove.KeyStore.
func (s *Store) KeyByHash(ctx context.Context, hash []byte) (*cove.Key, error) {
	s.mu.RLock()
	id := s.hashes[string(hash)]
	s.mu.RUnlock()
	return fetch(ctx, s, &s.keys, string(id), "key with this secret")
}

// KeyByID implements cove.KeyStore.
func (s *Store) KeyByID(ctx context.Context, id cove.ID) (*cove.Key, error) {
	return fetch(ctx, s, &s.keys, string(id), "such key")
}

// Keys implements cove.KeyStore. Keys come by id.
func (s *Store) Keys(ctx context.Context) iter.Seq2[*cove.Key, error] {
	return list(ctx, s, &s.keys, "", 0, func(*cove.Key) bool { return true })
}
