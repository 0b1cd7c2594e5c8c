package sqlite

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

const (
	putRun = `INSERT INTO run (id, state, data) VALUES (?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, data = excluded.data`
	selectRun = `SELECT data FROM run WHERE id = ?`
	deleteRun = `DELETE FROM run WHERE id = ?`
)

// PutRun implements cove.RunStore. It inserts or replaces.
func (s *Store) PutRun(ctx context.Context, r *cove.Run) error {
	if err := identify(field{"run_id", string(r.ID)}, field{"tenant", r.Tenant}); err != nil {
		return err
	}
	data, err := encode(r)
	if err != nil {
		return err
	}
	return s.write(ctx, putRun, string(r.ID), string(r.State), data)
}

// GetRun implements cove.RunStore.
func (s *Store) GetRun(ctx context.Context, id cove.ID) (*cove.Run, error) {
	return get[cove.Run](ctx, s, "such run", selectRun, string(id))
}

// Runs implements cove.RunStore. Runs come by id; no state selects all.
func (s *Store) Runs(ctx context.Context, state cove.RunState) iter.Seq2[*cove.Run, error] {
	q := selection{table: "run"}
	q.where("state = ?", string(state))
	return list[cove.Run](ctx, s, q, nil)
}

// DeleteRun implements cove.RunStore.
func (s *Store) DeleteRun(ctx context.Context, id cove.ID) error {
	return s.write(ctx, deleteRun, string(id))
}
