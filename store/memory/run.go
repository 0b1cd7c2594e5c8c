package memory

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

// PutRun implements cove.RunStore. It inserts or replaces.
func (s *Store) PutRun(ctx context.Context, r *cove.Run) error {
	kept, err := newRow(r, field{"run_id", string(r.ID)}, field{"tenant", r.Tenant})
	if err != nil {
		return err
	}
	return s.change(ctx, func() error {
		s.runs.put(kept)
		return nil
	})
}

// GetRun implements cove.RunStore.
func (s *Store) GetRun(ctx context.Context, id cove.ID) (*cove.Run, error) {
	return fetch(ctx, s, &s.runs, string(id), "such run")
}

// Runs implements cove.RunStore. Runs come by id; no state selects all.
func (s *Store) Runs(ctx context.Context, state cove.RunState) iter.Seq2[*cove.Run, error] {
	return list(ctx, s, &s.runs, "", 0, func(r *cove.Run) bool { return state == "" || state == r.State })
}

// DeleteRun implements cove.RunStore.
func (s *Store) DeleteRun(ctx context.Context, id cove.ID) error {
	return s.change(ctx, func() error {
		s.runs.remove(string(id))
		return nil
	})
}
