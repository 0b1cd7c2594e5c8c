package sqlite

import (
	"context"
	"iter"
	"time"

	"github.com/cove-sandbox/cove"
)

const (
	putRun = `INSERT INTO run (id, tenant, state, created_at, data) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET tenant = excluded.tenant, state = excluded.state, created_at = excluded.created_at, data = excluded.data`
	selectRun = `SELECT data FROM run WHERE id = ?`
	deleteRun = `DELETE FROM run WHERE id = ?`
	trimRuns  = `DELETE FROM run WHERE id IN (
		SELECT id FROM (
			SELECT id, created_at, row_number() OVER (PARTITION BY tenant ORDER BY created_at DESC, id DESC) AS n
			FROM run INDEXED BY run_created WHERE state <> 'running')
		WHERE n > ? OR created_at < ?)`
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
	return s.write(ctx, putRun, string(r.ID), r.Tenant, string(r.State), r.CreatedAt.UTC().Format(stamp), data)
}

// GetRun implements cove.RunStore.
func (s *Store) GetRun(ctx context.Context, id cove.ID) (*cove.Run, error) {
	return get[cove.Run](ctx, s, "such run", selectRun, string(id))
}

// Runs implements cove.RunStore.
func (s *Store) Runs(ctx context.Context, f cove.RunFilter) iter.Seq2[*cove.Run, error] {
	q := selection{table: "run", after: f.After, back: f.Newest, limit: f.Limit}
	q.where("state = ?", string(f.State))
	q.where("tenant = ?", f.Tenant)
	return list(ctx, s, q, f.Match)
}

// DeleteRun implements cove.RunStore.
func (s *Store) DeleteRun(ctx context.Context, id cove.ID) error {
	return s.write(ctx, deleteRun, string(id))
}

// TrimRuns implements cove.RunStore.
func (s *Store) TrimRuns(ctx context.Context, before time.Time, most int) (int64, error) {
	n, err := s.writer.exec(ctx, trimRuns, most, before.UTC().Format(stamp))
	if err != nil {
		return 0, fault(s.path, err)
	}
	return n, nil
}
