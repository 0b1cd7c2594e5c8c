package memory

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

// liveKey is what at most one live session holds.
type liveKey struct{ tenant, user, thread string }

// held returns the key that a session holds, if it holds one.
func held(rec *cove.Session) (liveKey, bool) {
	k := liveKey{rec.Tenant, rec.Spec.User, rec.Spec.Thread}
	return k, rec.State.Live() && (k.user != "" || k.thread != "")
}

// PutSession implements cove.SessionStore.
func (s *Store) PutSession(ctx context.Context, rec *cove.Session) error {
	next := *rec
	next.Version++
	r, err := newRow(&next, field{"id", string(rec.ID)}, field{"tenant", rec.Tenant}, field{"project_name", rec.Spec.Project},
		field{"user_id", rec.Spec.User}, field{"thread_id", rec.Spec.Thread})
	if err != nil {
		return err
	}
	return s.change(ctx, func() error {
		old := s.sessions.get(r.id)
		if old == nil && rec.Version != 0 || old != nil && old.value.Version != rec.Version {
			return cove.Errorf(cove.Conflict, "session %.40q is not at version %d; read it again", r.id, rec.Version)
		}
		key, holds := held(r.value)
		if other, taken := s.holders[key]; holds && taken && other != rec.ID {
			return cove.Errorf(cove.Conflict, "another live session holds user_id %.80q and thread_id %.80q; use that one or end it", key.user, key.thread)
		}
		s.release(old)
		if holds {
			s.holders[key] = rec.ID
		}
		s.sessions.put(r)
		rec.Version = next.Version
		return nil
	})
}

// release gives back the key of a record that is about to go; s.mu is held.
func (s *Store) release(old *row[cove.Session]) {
	if old == nil {
		return
	}
	if key, ok := held(old.value); ok {
		delete(s.holders, key)
	}
}

// GetSession implements cove.SessionStore.
func (s *Store) GetSession(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return fetch(ctx, s, &s.sessions, string(id), "such session")
}

// Sessions implements cove.SessionStore.
func (s *Store) Sessions(ctx context.Context, f cove.SessionFilter) iter.Seq2[*cove.Session, error] {
	match := f.Match
	if f.State == cove.Ended { // Match never selects ended sessions
		f.State = cove.Stopped
		match = func(rec *cove.Session) bool {
			probe := *rec
			probe.State = cove.Stopped
			return rec.State == cove.Ended && f.Match(&probe)
		}
	}
	return list(ctx, s, &s.sessions, f.After, f.Limit, match)
}

// DeleteSession implements cove.SessionStore.
func (s *Store) DeleteSession(ctx context.Context, id cove.ID) error {
	return s.change(ctx, func() error {
		s.release(s.sessions.get(string(id)))
		s.sessions.remove(string(id))
		return nil
	})
}
