package auth

import (
	"context"
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
// Nobody else may write keys to the store meanwhile. The result is safe for
// concurrent use.
func Remembering(store cove.Store) cove.Store {
	return &remembering{Store: store, keys: map[string]*cove.Key{}}
}

type remembering struct {
	cove.Store

	mu   sync.RWMutex
	keys map[string]*cove.Key // guarded by mu; by hash
	age  int                  // guarded by mu; counts what made all that is read before it old
}

// KeyByHash implements cove.KeyStore. The caller may keep and change the key.
func (r *remembering) KeyByHash(ctx context.Context, hash []byte) (*cove.Key, error) {
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
func (r *remembering) PutKey(ctx context.Context, k *cove.Key) error {
	// Also after an error: it may have been written all the same.
	defer r.forget()
	return r.Store.PutKey(ctx, k)
}

func (r *remembering) forget() {
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
