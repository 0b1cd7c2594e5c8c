package redis

import (
	"context"
	"iter"
	"strconv"

	"github.com/cove-sandbox/cove"
)

// How session_put.lua is to take a record.
const (
	modePut     = "put"
	modeRestore = "restore"
	modeLose    = "lose"
	modeBury    = "bury"
)

// maxTries bounds how often a write is tried again because others were faster.
const maxTries = 8

// holder names what a live session holds, or "" where it holds nothing.
func holder(tenant, user, thread string) string {
	if user == "" && thread == "" {
		return ""
	}
	return compound(tenant, user, thread)
}

// write runs session_put.lua. next is the record as it is to be kept.
func (s *Store) write(ctx context.Context, mode string, expected int64, next *cove.Session) (answer, error) {
	if err := identify(text{"id", string(next.ID)}, text{"tenant", next.Tenant}, text{"project_name", next.Spec.Project},
		text{"user_id", next.Spec.User}, text{"thread_id", next.Spec.Thread}); err != nil {
		return nil, err
	}
	data, err := encode(next)
	if err != nil {
		return nil, err
	}
	holds := ""
	if next.State.Live() {
		holds = holder(next.Tenant, next.Spec.User, next.Spec.Thread)
	}
	return s.run(ctx, scripts.putSession, mode, string(next.ID), strconv.FormatInt(expected, 10), data, strconv.FormatInt(next.Version, 10),
		next.Tenant, next.Owner, string(next.State), next.Node, memoryOf(next), holds)
}

// claim is write for a session that may hold a user and thread. A session of a
// node that is gone does not keep them from it.
func (s *Store) claim(ctx context.Context, mode string, expected int64, next *cove.Session) (answer, error) {
	for range maxTries {
		a, err := s.write(ctx, mode, expected, next)
		if err != nil || !a.is("lost", 1) {
			return a, err
		}
		if _, err := s.Locate(ctx, cove.ID(a[1])); err != nil && cove.CodeOf(err) != cove.NotFound {
			return nil, err
		}
	}
	return nil, cove.Errorf(cove.Conflict, "session %.40q changes faster than it can be written; try again", string(next.ID))
}

// PutSession implements cove.SessionStore.
func (s *Store) PutSession(ctx context.Context, rec *cove.Session) error {
	if s.node != "" && rec.Node != "" && rec.Node != s.node {
		return s.elsewhere(rec.ID, rec.Node)
	}
	next := *rec
	next.Version++
	a, err := s.claim(ctx, modePut, rec.Version, &next)
	if err != nil {
		return err
	}
	if err := s.refusal(a, rec); err != nil {
		return err
	}
	rec.Version = next.Version
	return nil
}

// Room implements cove.Directory.
func (s *Store) Room(ctx context.Context, rec *cove.Session) error {
	a, err := s.run(ctx, scripts.room, rec.Tenant, rec.Owner, memoryOf(rec))
	if err != nil {
		return err
	}
	return s.refusal(a, rec)
}

// memoryOf is what a session counts for, as scripts take it.
func memoryOf(rec *cove.Session) string { return strconv.FormatInt(max(0, int64(rec.Memory)), 10) }

// Unowned implements cove.Directory.
func (s *Store) Unowned(ctx context.Context) iter.Seq2[*cove.Session, error] {
	return list(ctx, s, selection[cove.Session]{kind: "session", set: "sessions:at:"})
}

// refusal says in words why a session was not put.
func (s *Store) refusal(a answer, rec *cove.Session) error {
	switch {
	case a.is("ok", 0):
		return nil
	case a.is("version", 0):
		return cove.Errorf(cove.Conflict, "session %.40q is not at version %d; read it again", string(rec.ID), rec.Version)
	case a.is("elsewhere", 2):
		return s.elsewhere(cove.ID(a[1]), a[2])
	case a.is("held", 2):
		e := cove.Errorf(cove.Conflict, "another live session holds user_id %.80q and thread_id %.80q; use that one or end it", rec.Spec.User, rec.Spec.Thread)
		if s.node == "" {
			return e
		}
		return e.Reason(cove.ReasonElsewhere).With("node", a[2]).With("session_id", a[1])
	case a.is("settling", 1):
		return s.settling(number(a[1]))
	case a.is("tenant_quota", 0):
		return cove.Errorf(cove.Exhausted, "tenant %.80q has as many sandboxes, or as much memory, as it may have in all nodes", rec.Tenant).
			Reason(cove.ReasonTenantQuota).Remedy("end or stop a session of the tenant, or have its quota raised").With("retry_after", quotaRetry)
	case a.is("key_quota", 0):
		return cove.Errorf(cove.Exhausted, "the key has as many sessions as it may have in all nodes").
			Reason(cove.ReasonKeyQuota).Remedy("end or stop a session of this key, or use a key with a higher limit").With("retry_after", quotaRetry)
	}
	return strange(a)
}

// quotaRetry is how many seconds who is over a quota waits.
const quotaRetry = 5

// elsewhere is the error for a session that another node has.
func (s *Store) elsewhere(id cove.ID, node string) error {
	return cove.Errorf(cove.Conflict, "session %.40q belongs to node %.80q, which alone writes it", string(id), node).
		Reason(cove.ReasonElsewhere).With("node", node).With("session_id", string(id))
}

// GetSession implements cove.SessionStore.
func (s *Store) GetSession(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return fetch[cove.Session](ctx, s, "session", string(id), "such session")
}

// Sessions implements cove.SessionStore.
func (s *Store) Sessions(ctx context.Context, f cove.SessionFilter) iter.Seq2[*cove.Session, error] {
	q := selection[cove.Session]{kind: "session", set: "sessions:open", after: f.After, limit: f.Limit, match: f.Match}
	switch {
	case f.State == cove.Ended:
		q.set = "sessions:ended"
	case f.Node != "":
		q.set = "sessions:at:" + f.Node
	case f.Tenant != "":
		q.set = "sessions:of:" + f.Tenant
	}
	return list(ctx, s, q)
}

// DeleteSession implements cove.SessionStore. In a cluster, a session of another
// node can be deleted only when it has ended.
func (s *Store) DeleteSession(ctx context.Context, id cove.ID) error {
	a, err := s.run(ctx, scripts.deleteSession, string(id))
	switch {
	case err != nil:
		return err
	case a.is("elsewhere", 2):
		return s.elsewhere(id, a[2])
	}
	return nil
}
