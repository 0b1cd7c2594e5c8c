package storetest

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

var hostileCases = []testCase{
	{"Text", hostileText},
	{"NotUTF8", hostileNotUTF8},
	{"IDs", hostileIDs},
}

// texts are what people write who want to break a store, or who have a name.
var texts = []string{
	`'; DROP TABLE session; --`, `" OR ""="`, `' OR ''='`, `\`, `\'`, `%`, `_`, `*`, `?`, `$1`, `:id`, `{}`, `[a-z]*`,
	"line\nbreak\r\n\ttab", "\x01\x7f\x1b[2J", "null", "NULL", "0", "é", "e\u0301", "日本語", "\U0001f4a5", "\u202eevil", "\ufeffbom",
	"\ufffd", `\ufffd`, `\u0000`, "<script>&amp;</script>", " ", " leading", "trailing ", "../../etc/passwd",
	strings.Repeat("x", 10_000), strings.Repeat("'", 10_000), strings.Repeat("é", 5_000),
}

func hostileText(t *testing.T, s cove.Store) {
	for i, text := range texts {
		rec := session(numbered(i), held(text, text))
		rec.Tenant, rec.Spec.Project, rec.Owner, rec.Cause = text, text, text, text
		rec.Spec.Metadata, rec.Spec.Env = map[string]string{text: text}, map[string]string{text: text}
		ok(t, s.PutSession(t.Context(), rec))
		fails(t, s.PutSession(t.Context(), session("rival", held(text, text), func(r *cove.Session) { r.Tenant = text })), cove.Conflict)
		ok(t, s.PutTenant(t.Context(), fullTenant(text)))
		_, err := s.AddUsage(t.Context(), text, cove.Consumption{Executions: 1})
		ok(t, err)
		taken(t, s, claim(text, text), epoch)
		snap := fullSnapshot(numbered(i))
		snap.Tenant, snap.Session, snap.Name = text, cove.ID(text), text
		ok(t, s.PutSnapshot(t.Context(), snap))
	}
	for i, text := range texts {
		want, err := s.GetSession(t.Context(), numbered(i))
		ok(t, err)
		same(t, want.Spec.Metadata, map[string]string{text: text})
		for _, f := range []cove.SessionFilter{
			{Tenant: text},
			{User: text},
			{Thread: text},
			{Project: text},
			{Metadata: map[string]string{text: text}},
			{Tenant: text, User: text, Thread: text, Project: text, State: cove.Running},
		} {
			same(t, all(t, s.Sessions(t.Context(), f)), []*cove.Session{want})
		}
		same(t, len(all(t, s.Snapshots(t.Context(), cove.SnapshotFilter{Tenant: text, Session: cove.ID(text)}))), 1)
		tenant, err := s.GetTenant(t.Context(), text)
		ok(t, err)
		same(t, tenant.Name, text)
		sum, err := s.AddUsage(t.Context(), text, cove.Consumption{})
		ok(t, err)
		same(t, sum, cove.Consumption{Executions: 1})
		heldBy(t, s, otherThan(claim(text, text)), epoch, claim(text, text))
	}
	same(t, len(all(t, s.Sessions(t.Context(), cove.SessionFilter{}))), len(texts))
}

func hostileNotUTF8(t *testing.T, s cove.Store) {
	const bad = "a\xffb"
	for name, spoil := range map[string]func(*cove.Session){
		"id":      func(r *cove.Session) { r.ID = bad },
		"tenant":  func(r *cove.Session) { r.Tenant = bad },
		"user":    func(r *cove.Session) { r.Spec.User = bad },
		"thread":  func(r *cove.Session) { r.Spec.Thread = bad },
		"project": func(r *cove.Session) { r.Spec.Project = bad },
	} {
		t.Log(name)
		fails(t, s.PutSession(t.Context(), session("a", spoil)), cove.Invalid)
	}
	key := fullKey("a")
	key.Tenant = bad
	fails(t, s.PutKey(t.Context(), key), cove.Invalid)
	fails(t, s.PutTenant(t.Context(), fullTenant(bad)), cove.Invalid)
	snap := fullSnapshot("a")
	snap.Session = bad
	fails(t, s.PutSnapshot(t.Context(), snap), cove.Invalid)
	fails(t, s.PutRun(t.Context(), fullRun(bad)), cove.Invalid)

	rec := session("b")
	rec.Cause = bad // not searched: kept as text
	ok(t, s.PutSession(t.Context(), rec))
	got, err := s.GetSession(t.Context(), "b")
	ok(t, err)
	same(t, got.Cause, "a\ufffdb")
	for _, f := range []cove.SessionFilter{{Tenant: bad}, {User: bad}, {Project: bad}, {Thread: "a\ufffdb"}} {
		same(t, len(all(t, s.Sessions(t.Context(), f))), 0)
	}
	same(t, len(all(t, s.Sessions(t.Context(), cove.SessionFilter{}))), 1)
}

// hostileIDs asks for what cannot be there.
func hostileIDs(t *testing.T, s cove.Store) {
	for _, text := range append(texts, "a\xff", "") {
		id := cove.ID(text)
		_, err := s.GetSession(t.Context(), id)
		fails(t, err, cove.NotFound)
		_, err = s.GetSnapshot(t.Context(), id)
		fails(t, err, cove.NotFound)
		_, err = s.GetVolume(t.Context(), id)
		fails(t, err, cove.NotFound)
		_, err = s.GetRun(t.Context(), id)
		fails(t, err, cove.NotFound)
		ok(t, s.DeleteSession(t.Context(), id))
		ok(t, s.DeleteSnapshot(t.Context(), id))
		ok(t, s.DeleteVolume(t.Context(), id))
		ok(t, s.DeleteRun(t.Context(), id))
		ok(t, first(s.Sessions(t.Context(), cove.SessionFilter{After: id, Limit: -1})))
	}
}
