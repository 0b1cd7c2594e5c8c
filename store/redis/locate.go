package redis

import (
	"context"
	"log/slog"
	"time"

	"github.com/cove-sandbox/cove"
)

// Locate implements cove.Directory.
func (s *Store) Locate(ctx context.Context, id cove.ID) (*cove.Session, error) {
	rec, _, err := s.locate(ctx, string(id), "")
	return rec, err
}

// Holder implements cove.Directory.
func (s *Store) Holder(ctx context.Context, tenant, user, thread string) (*cove.Session, error) {
	key := holder(tenant, user, thread)
	if key == "" {
		return nil, noHolder()
	}
	rec, lost, err := s.locate(ctx, "", key)
	if lost || cove.CodeOf(err) == cove.NotFound {
		return nil, noHolder()
	}
	return rec, err
}

func noHolder() error {
	return cove.Errorf(cove.NotFound, "there is no live session of this user_id and thread_id").Reason(cove.ReasonNoSession)
}

// locate finds a session by its id, or by what it holds, and ends it where its
// node is gone.
func (s *Store) locate(ctx context.Context, id, holds string) (rec *cove.Session, lost bool, err error) {
	for range maxTries {
		a, err := s.run(ctx, scripts.locate, id, holds)
		switch {
		case err != nil:
			return nil, false, err
		case a.is("none", 1) && a[1] != "0":
			return nil, false, s.settling(number(a[1]))
		case a.is("none", 1):
			return nil, false, cove.Errorf(cove.NotFound, "there is no such session").Reason(cove.ReasonNoSession)
		case !a.is("ok", 3):
			return nil, false, strange(a)
		}
		rec, err := decode[cove.Session](a[1])
		if err != nil || a[2] == "" {
			return rec, false, err
		}
		if done, err := s.lose(ctx, rec, number(a[3])); err != nil || done {
			return rec, true, err
		}
	}
	return nil, false, cove.Errorf(cove.Conflict, "the session changes faster than it can be read; try again")
}

// lose ends a session whose node is gone, unless the node is back or somebody
// else was faster. now is by the clock of Redis. One whose files are where every node
// finds them, because it is stopped or was just being started, is stopped and nobody's
// from then on instead.
func (s *Store) lose(ctx context.Context, rec *cove.Session, now int64) (bool, error) {
	was := rec.Version
	if rec.Archived && rec.Spec.Workspace.Moves {
		rec.State = cove.Stopped
		return false, s.free(ctx, rec)
	}
	endLost(rec, time.UnixMilli(now).UTC())
	a, err := s.write(ctx, modeLose, was, rec)
	if err != nil || !a.is("ok", 0) {
		return false, err
	}
	s.graves.add(rec)
	s.log.InfoContext(ctx, "a session is lost with its node", slog.String("session_id", string(rec.ID)), slog.String("node", rec.Node))
	return true, nil
}

// free makes a stopped session nobody's. Whether somebody was faster is seen when it
// is read again.
func (s *Store) free(ctx context.Context, rec *cove.Session) error {
	was, from := rec.Version, rec.Node
	rec.Node = ""
	rec.Version++
	a, err := s.write(ctx, modeLose, was, rec)
	if err == nil && a.is("ok", 0) {
		s.log.InfoContext(ctx, "a stopped session outlives its node", slog.String("session_id", string(rec.ID)), slog.String("node", from))
	}
	return err
}

func endLost(rec *cove.Session, at time.Time) {
	rec.State, rec.Cause, rec.EndedAt = cove.Ended, cove.ReasonNodeLost, at
	rec.Version++
}

// The bounds of one Sweep.
const (
	sweepRows   = 32
	sweepRounds = 10_000
)

// Sweep implements cove.Directory.
func (s *Store) Sweep(ctx context.Context) (n int64, err error) {
	for range sweepRounds {
		a, err := s.run(ctx, scripts.sweep, sweepRows)
		if err != nil {
			return n, err
		}
		if !a.is("ok", 1) {
			return n, strange(a)
		}
		before := n
		for _, data := range a[2:] {
			rec, err := decode[cove.Session](data)
			if err != nil {
				return n, err
			}
			done, err := s.lose(ctx, rec, number(a[1]))
			if err != nil {
				return n, err
			}
			if done {
				n++
			}
		}
		if n == before {
			return n, nil
		}
	}
	return n, nil
}
