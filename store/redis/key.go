package redis

import (
	"context"
	"iter"
	"strconv"

	"github.com/cove-sandbox/cove"
)

// PutKey implements cove.KeyStore. A hash that another key has is Conflict.
func (s *Store) PutKey(ctx context.Context, k *cove.Key) error {
	if len(k.Hash) == 0 {
		return cove.InvalidField("hash", "is empty")
	}
	if err := identify(text{"id", string(k.ID)}, text{"tenant", k.Tenant}); err != nil {
		return err
	}
	data, err := encode(k)
	if err != nil {
		return err
	}
	notice, err := encode(cove.Notice{Key: k.ID, Revoked: !k.RevokedAt.IsZero()})
	if err != nil {
		return err
	}
	a, err := s.put(ctx, record{
		kind: "key", id: string(k.ID), data: data, hash: string(k.Hash), notice: notice,
		fields: []string{"sessions", strconv.Itoa(k.Limits.Sessions)}, sets: []string{"key:all", string(k.ID)},
	})
	if err == nil && a.is("taken", 0) {
		return cove.Errorf(cove.Conflict, "another key has the same secret; make a new one")
	}
	return err
}

// KeyByHash implements cove.KeyStore. While a directory that was begun anew may lack
// keys, nobody can be told that there is none.
func (s *Store) KeyByHash(ctx context.Context, hash []byte) (*cove.Key, error) {
	a, err := s.run(ctx, scripts.keyByHash, string(hash))
	if err != nil {
		return nil, err
	}
	switch {
	case a.is("none", 1) && a[1] != "0":
		return nil, s.settling(number(a[1]))
	case !a.is("ok", 1):
		return nil, cove.Errorf(cove.NotFound, "there is no key with this secret")
	}
	return decode[cove.Key](a[1])
}

// KeyByID implements cove.KeyStore.
func (s *Store) KeyByID(ctx context.Context, id cove.ID) (*cove.Key, error) {
	return fetch[cove.Key](ctx, s, "key", string(id), "such key")
}

// Keys implements cove.KeyStore. Keys come by id.
func (s *Store) Keys(ctx context.Context) iter.Seq2[*cove.Key, error] {
	return list(ctx, s, selection[cove.Key]{kind: "key", set: "key:all"})
}
