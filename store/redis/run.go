package redis

import (
	"context"
	"iter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cove-sandbox/cove"
)

// trimRows is how many records one script drops at most: nobody else is served
// meanwhile.
const trimRows = 500

// PutRun implements cove.RunStore. It inserts or replaces.
func (s *Store) PutRun(ctx context.Context, r *cove.Run) error {
	if err := identify(text{"run_id", string(r.ID)}, text{"tenant", r.Tenant}, text{"state", string(r.State)}); err != nil {
		return err
	}
	data, err := encode(r)
	if err != nil {
		return err
	}
	id := string(r.ID)
	sets := []string{"run:all", id, "run:of:" + r.Tenant, id, "run:state:" + string(r.State), id}
	if r.State != cove.RunRunning {
		sets = append(sets, "run:age:"+r.Tenant, stamped(r.CreatedAt)+id)
	}
	_, err = s.put(ctx, record{kind: "run", id: id, data: data, fields: []string{"tenant", r.Tenant}, sets: sets})
	return err
}

// GetRun implements cove.RunStore.
func (s *Store) GetRun(ctx context.Context, id cove.ID) (*cove.Run, error) {
	return fetch[cove.Run](ctx, s, "run", string(id), "such run")
}

// Runs implements cove.RunStore.
func (s *Store) Runs(ctx context.Context, f cove.RunFilter) iter.Seq2[*cove.Run, error] {
	q := selection[cove.Run]{kind: "run", set: "run:all", after: f.After, back: f.Newest, limit: f.Limit, match: f.Match}
	switch {
	case f.State == cove.RunRunning: // of which there are few
		q.set = "run:state:" + string(f.State)
	case f.Tenant != "":
		q.set = "run:of:" + f.Tenant
	case f.State != "":
		q.set = "run:state:" + string(f.State)
	}
	return list(ctx, s, q)
}

// DeleteRun implements cove.RunStore.
func (s *Store) DeleteRun(ctx context.Context, id cove.ID) error { return s.remove(ctx, "run", id) }

// TrimRuns implements cove.RunStore.
func (s *Store) TrimRuns(ctx context.Context, before time.Time, most int) (int64, error) {
	return s.drop(ctx, scripts.trimRuns, len(stamp), stamped(before), most, trimRows)
}

// drop runs a script that drops some records until it has dropped all that it
// should, and returns how many. It ends because there are fewer each time.
func (s *Store) drop(ctx context.Context, script *redis.Script, args ...any) (n int64, err error) {
	for {
		a, err := s.run(ctx, script, args...)
		if err != nil {
			return n, err
		}
		if !a.is("ok", 2) {
			return n, strange(a)
		}
		n += number(a[1])
		if a[2] == "" {
			return n, nil
		}
	}
}
