package sqlite

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

const (
	putKey = `INSERT INTO access_key (id, hash, data) VALUES (?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, data = excluded.data`
	selectKey     = `SELECT data FROM access_key WHERE hash = ?`
	selectKeyByID = `SELECT data FROM access_key WHERE id = ?`
)

// PutKey implements cove.KeyStore. A hash that another key has is Conflict.
func (s *Store) PutKey(ctx context.Context, k *cove.Key) error {
	if err := identify(field{"id", string(k.ID)}, field{"tenant", k.Tenant}); err != nil {
		return err
	}
	if len(k.Hash) == 0 {
		return cove.InvalidField("hash", "is empty")
	}
	data, err := encode(k)
	if err != nil {
		return err
	}
	_, err = s.writer.exec(ctx, putKey, string(k.ID), k.Hash, data)
	if isKeyTaken(err) {
		return cove.Wrap(cove.Conflict, err, "another key has the same secret; make a new one")
	}
	if err != nil {
		return fault(s.path, err)
	}
	return nil
}

// KeyByHash implements cove.KeyStore.
func (s *Store) KeyByHash(ctx context.Context, hash []byte) (*cove.Key, error) {
	return get[cove.Key](ctx, s, "key with this secret", selectKey, hash)
}

// KeyByID implements cove.KeyStore.
func (s *Store) KeyByID(ctx context.Context, id cove.ID) (*cove.Key, error) {
	return get[cove.Key](ctx, s, "such key", selectKeyByID, string(id))
}

// Keys implements cove.KeyStore. Keys come by id.
func (s *Store) Keys(ctx context.Context) iter.Seq2[*cove.Key, error] {
	return list[cove.Key](ctx, s, selection{table: "access_key"}, nil)
}
