package memory

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

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

// Runs implements cove.RunStore.
func (s *Store) Runs(ctx context.Context, f cove.RunFilter) iter.Seq2[*cove.Run, error] {
	if f.Newest {
		return listBack(ctx, s, &s.runs, f.After, f.Limit, f.Match)
	}
	return list(ctx, s, &s.runs, f.After, f.Limit, f.Match)
}

// DeleteRun implements cove.RunStore.
func (s *Store) DeleteRun(ctx context.Context, id cove.ID) error {
	return s.change(ctx, func() error {
		s.runs.remove(string(id))
		return nil
	})
}

// TrimRuns implements cove.RunStore.
func (s *Store) TrimRuns(ctx context.Context, before time.Time, most int) (n int64, err error) {
	err = s.change(ctx, func() error {
		ended := map[string][]*cove.Run{}
		for _, r := range s.runs.rows {
			if r.value.State != cove.RunRunning {
				ended[r.value.Tenant] = append(ended[r.value.Tenant], r.value)
			}
		}
		over := map[*cove.Run]bool{}
		for _, list := range ended {
			slices.SortFunc(list, func(a, b *cove.Run) int {
				return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
			})
			for i, r := range list {
				over[r] = i >= most || r.CreatedAt.Before(before)
			}
		}
		n = s.runs.drop(func(r *cove.Run) bool { return over[r] })
		return nil
	})
	return n, err
}
