package auth

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/cove-sandbox/cove"
)

// maxRemembered is how many keys are remembered before all are forgotten. Only
// keys of the store are, so that strangers cannot fill the memory.
const maxRemembered = 4096

// Remembering returns store with a memory for keys, so that a request needs no
// look into the store to be known. A key that is put through it is forgotten
// before PutKey returns: a revocation still counts from the next request on.
// Whoever else writes keys to the store must have Forget called. The result is
// safe for concurrent use.
func Remembering(store cove.Store) *Remembered {
	return &Remembered{Store: store, keys: map[string]*cove.Key{}}
}

// Remembered is a store with a memory for keys.
type Remembered struct {
	cove.Store

	mu   sync.RWMutex
	keys map[string]*cove.Key // guarded by mu; by hash
	age  int                  // guarded by mu; counts what made all that is read before it old
}

// KeyByHash implements cove.KeyStore. The caller may keep and change the key.
func (r *Remembered) KeyByHash(ctx context.Context, hash []byte) (*cove.Key, error) {
	r.mu.RLock()
	k, age := r.keys[string(hash)], r.age
	r.mu.RUnlock()
	if k != nil {
		return copied(k), nil
	}
	k, err := r.Store.KeyByHash(ctx, hash)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.age == age { // else it may have been read before it was changed
		if len(r.keys) >= maxRemembered {
			clear(r.keys)
		}
		r.keys[string(hash)] = copied(k)
	}
	return k, nil
}

// PutKey implements cove.KeyStore.
func (r *Remembered) PutKey(ctx context.Context, k *cove.Key) error {
	// Also after an error: it may have been written all the same.
	defer r.Forget()
	return r.Store.PutKey(ctx, k)
}

// ForgetKey has one key looked up anew.
func (r *Remembered) ForgetKey(id cove.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.age++
	maps.DeleteFunc(r.keys, func(_ string, k *cove.Key) bool { return k.ID == id })
}

// Forget has every key looked up anew.
func (r *Remembered) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.age++
	clear(r.keys)
}

func copied(k *cove.Key) *cove.Key {
	c := *k
	c.Hash, c.Scopes, c.Defaults = slices.Clone(k.Hash), slices.Clone(k.Scopes), k.Defaults.Clone()
	return &c
}

// Recheck looks up anew what is remembered: keys that changed are taken as they are
// now. Those that the store does not have any more, though no key is ever removed
// from it, are returned; they stay remembered, as those do that cannot be looked up.
func (r *Remembered) Recheck(ctx context.Context) (missing []*cove.Key) {
	r.mu.RLock()
	known := make([]*cove.Key, 0, len(r.keys))
	for _, k := range r.keys {
		known = append(known, copied(k))
	}
	r.mu.RUnlock()
	for _, k := range known {
		now, err := r.KeyByID(ctx, k.ID)
		switch {
		case err == nil:
			r.mu.Lock()
			r.age++
			delete(r.keys, string(k.Hash))
			if now.RevokedAt.IsZero() {
				r.keys[string(now.Hash)] = copied(now)
			}
			r.mu.Unlock()
		case errors.Is(err, cove.NotFound):
			missing = append(missing, k)
		}
	}
	return missing
}
