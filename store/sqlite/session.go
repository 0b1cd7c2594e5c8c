package sqlite

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

const (
	insertSession = `INSERT INTO session (version, tenant, project, user, thread, state, past, data, id)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`
	updateSession = `UPDATE session SET version = ?, tenant = ?, project = ?, user = ?, thread = ?, state = ?, past = ?, data = ?
		WHERE id = ? AND version = ?`
	selectSession = `SELECT data FROM session WHERE id = ?`
	deleteSession = `DELETE FROM session WHERE id = ?`
)

// PutSession implements cove.SessionStore.
func (s *Store) PutSession(ctx context.Context, rec *cove.Session) error {
	if err := identify(field{"id", string(rec.ID)}, field{"tenant", rec.Tenant}, field{"project_name", rec.Spec.Project},
		field{"user_id", rec.Spec.User}, field{"thread_id", rec.Spec.Thread}); err != nil {
		return err
	}
	next := *rec
	next.Version++
	data, err := encode(&next)
	if err != nil {
		return err
	}
	past := ""
	if !rec.State.Live() {
		past = string(rec.ID)
	}
	query, args := insertSession, []any{
		next.Version, rec.Tenant, rec.Spec.Project, rec.Spec.User, rec.Spec.Thread,
		string(rec.State), past, data, string(rec.ID),
	}
	if rec.Version != 0 {
		query, args = updateSession, append(args, rec.Version)
	}
	changed, err := s.writer.exec(ctx, query, args...)
	switch {
	case isKeyTaken(err):
		return cove.Wrap(cove.Conflict, err, "another live session holds user_id %.80q and thread_id %.80q; use that one or end it",
			rec.Spec.User, rec.Spec.Thread)
	case err != nil:
		return fault(s.path, err)
	case changed == 0:
		return cove.Errorf(cove.Conflict, "session %.40q is not at version %d; read it again", string(rec.ID), rec.Version)
	}
	rec.Version = next.Version
	return nil
}

// GetSession implements cove.SessionStore.
func (s *Store) GetSession(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return get[cove.Session](ctx, s, "such session", selectSession, string(id))
}

// DeleteSession implements cove.SessionStore.
func (s *Store) DeleteSession(ctx context.Context, id cove.ID) error {
	return s.write(ctx, deleteSession, string(id))
}

// Sessions implements cove.SessionStore.
func (s *Store) Sessions(ctx context.Context, f cove.SessionFilter) iter.Seq2[*cove.Session, error] {
	q := selection{table: "session", after: f.After, limit: f.Limit}
	// Conditions with <> say nothing new: they are those of the partial indexes,
	// which SQLite uses only where it finds them in the query.
	if f.State == cove.Ended {
		q.conds = append(q.conds, "state = 'ended'")
	} else {
		q.conds = append(q.conds, "state <> 'ended'")
		q.where("state = ?", string(f.State))
	}
	q.where("tenant = ?", f.Tenant)
	q.where("thread = ? AND thread <> ''", f.Thread)
	q.where("user = ?", f.User)
	q.where("project = ?", f.Project)
	if f.Tenant != "" && f.Thread != "" && f.State != cove.Ended {
		// SQLite prefers an index that gives the order, and would look at every
		// session of the tenant to find the few of a thread.
		q.table = "session INDEXED BY session_key"
	}
	if len(f.Metadata) == 0 && f.Node == "" {
		return list[cove.Session](ctx, s, q, nil)
	}
	return list(ctx, s, q, func(rec *cove.Session) bool {
		if f.Node != "" && f.Node != rec.Node {
			return false
		}
		for k, v := range f.Metadata {
			if rec.Spec.Metadata[k] != v {
				return false
			}
		}
		return true
	})
}
