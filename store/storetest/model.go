package storetest

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cove-sandbox/cove"
)

// model lets chance use a store and the simplest thing that could be one, and
// compares every answer. The names are few, so that they meet often.
func model(t *testing.T, open func(t *testing.T) cove.Store) {
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t)
		defer func() { ok(rt, s.Close()) }()
		m := &machine{
			store: s, ctx: t.Context(), now: epoch,
			sessions: map[cove.ID]cove.Session{}, keys: map[cove.ID]cove.Key{}, tenants: map[string]cove.Tenant{},
			usage: map[string]cove.Consumption{}, snapshots: map[cove.ID]cove.Snapshot{}, runs: map[cove.ID]cove.Run{},
			claims: map[[2]string]cove.Claim{},
		}
		rt.Repeat(map[string]func(*rapid.T){
			"put session": m.putSession, "touch session": m.touchSession, "get session": m.getSession,
			"list sessions": m.listSessions, "delete session": m.deleteSession,
			"put key": m.putKey, "find key": m.findKey,
			"put tenant": m.putTenant, "get tenant": m.getTenant, "add usage": m.addUsage,
			"put snapshot": m.putSnapshot, "list snapshots": m.listSnapshots, "delete snapshot": m.deleteSnapshot,
			"put run": m.putRun, "list runs": m.listRuns, "delete run": m.deleteRun,
			"take claim": m.takeClaim, "set claim": m.setClaim, "drop claim": m.dropClaim, "time passes": m.timePasses,
		})
	})
}

// machine is a store under test and what it should hold.
type machine struct {
	store cove.Store
	ctx   context.Context //nolint:containedctx // the test's own, for all its calls
	now   time.Time

	sessions  map[cove.ID]cove.Session
	keys      map[cove.ID]cove.Key
	tenants   map[string]cove.Tenant
	usage     map[string]cove.Consumption
	snapshots map[cove.ID]cove.Snapshot
	runs      map[cove.ID]cove.Run
	claims    map[[2]string]cove.Claim
}

var (
	someID     = rapid.SampledFrom([]cove.ID{"a", "b", "c", "d", "e", "f"})
	someTenant = rapid.SampledFrom([]string{"acme", "globex"})
	someName   = rapid.SampledFrom([]string{"", "x", "y"})
	someState  = rapid.SampledFrom(cove.States())
	someRun    = rapid.SampledFrom([]cove.RunState{cove.RunRunning, cove.RunSucceeded, cove.RunFailed})
)

// agree compares an error with the code that the model gives, "" for none.
func agree(rt *rapid.T, err error, want cove.Code) {
	rt.Helper()
	if got := cove.CodeOf(err); got != want {
		rt.Fatalf("got error %v, the model says %q", err, want)
	}
}

// listed returns the values of a map whose keys come after one, in order.
func listed[T any](m map[cove.ID]T, after cove.ID, limit int, match func(T) bool) []*T {
	var out []*T
	for _, id := range slices.Sorted(maps.Keys(m)) {
		if v := m[id]; id > after && match(v) && (limit == 0 || len(out) < limit) {
			out = append(out, &v)
		}
	}
	return out
}

func (m *machine) putSession(rt *rapid.T) {
	rec := &cove.Session{
		ID: someID.Draw(rt, "id"), Tenant: someTenant.Draw(rt, "tenant"), State: someState.Draw(rt, "state"), CreatedAt: m.now,
		Version: rapid.SampledFrom([]int64{0, 0, 1, 2}).Draw(rt, "version"),
	}
	rec.Spec.User, rec.Spec.Thread, rec.Spec.Project = someName.Draw(rt, "user"), someName.Draw(rt, "thread"), someName.Draw(rt, "project")
	if label := someName.Draw(rt, "label"); label != "" {
		rec.Spec.Metadata = map[string]string{"label": label}
	}
	m.put(rt, rec)
}

// touchSession replaces a record at its current version.
func (m *machine) touchSession(rt *rapid.T) {
	rec, ok := m.sessions[someID.Draw(rt, "id")]
	if !ok {
		return
	}
	rec.State, rec.Spec.Thread = someState.Draw(rt, "state"), someName.Draw(rt, "thread")
	m.put(rt, &rec)
}

func (m *machine) put(rt *rapid.T, rec *cove.Session) {
	want, before := cove.Code(""), rec.Version
	if old, exists := m.sessions[rec.ID]; exists && old.Version != rec.Version || !exists && rec.Version != 0 {
		want = cove.Conflict
	}
	for id, other := range m.sessions {
		if id != rec.ID && rec.State.Live() && other.State.Live() && (rec.Spec.User != "" || rec.Spec.Thread != "") &&
			rec.Tenant == other.Tenant && rec.Spec.User == other.Spec.User && rec.Spec.Thread == other.Spec.Thread {
			want = cove.Conflict
		}
	}
	agree(rt, m.store.PutSession(m.ctx, rec), want)
	if want != "" {
		same(rt, rec.Version, before)
		return
	}
	if rec.Version == before {
		rt.Fatalf("version %d was not changed", before)
	}
	m.sessions[rec.ID] = *rec
}

func (m *machine) getSession(rt *rapid.T) {
	id := someID.Draw(rt, "id")
	got, err := m.store.GetSession(m.ctx, id)
	want, exists := m.sessions[id]
	if !exists {
		agree(rt, err, cove.NotFound)
		return
	}
	agree(rt, err, "")
	same(rt, got, &want)
}

func (m *machine) listSessions(rt *rapid.T) {
	f := cove.SessionFilter{
		Tenant: rapid.SampledFrom([]string{"", "acme"}).Draw(rt, "tenant"), User: someName.Draw(rt, "user"),
		Thread: someName.Draw(rt, "thread"), Project: someName.Draw(rt, "project"),
		After: rapid.SampledFrom([]cove.ID{"", "", "b", "bb"}).Draw(rt, "after"), Limit: rapid.IntRange(0, 3).Draw(rt, "limit"),
		State: rapid.SampledFrom(append(cove.States(), "", "", "")).Draw(rt, "state"),
	}
	if label := someName.Draw(rt, "label"); label != "" {
		f.Metadata = map[string]string{"label": label}
	}
	want := listed(m.sessions, f.After, f.Limit, func(s cove.Session) bool {
		return (s.State == f.State || f.State == "" && s.State != cove.Ended) &&
			(f.Tenant == "" || f.Tenant == s.Tenant) && (f.User == "" || f.User == s.Spec.User) &&
			(f.Thread == "" || f.Thread == s.Spec.Thread) && (f.Project == "" || f.Project == s.Spec.Project) &&
			(f.Metadata == nil || f.Metadata["label"] == s.Spec.Metadata["label"])
	})
	same(rt, all(rt, m.store.Sessions(m.ctx, f)), want)
}

func (m *machine) deleteSession(rt *rapid.T) {
	id := someID.Draw(rt, "id")
	agree(rt, m.store.DeleteSession(m.ctx, id), "")
	delete(m.sessions, id)
}

func (m *machine) putKey(rt *rapid.T) {
	k := cove.Key{ID: someID.Draw(rt, "id"), Hash: []byte{byte(rapid.IntRange(0, 3).Draw(rt, "hash"))}, CreatedAt: m.now}
	want := cove.Code("")
	for id, other := range m.keys {
		if id != k.ID && bytes.Equal(other.Hash, k.Hash) {
			want = cove.Conflict
		}
	}
	agree(rt, m.store.PutKey(m.ctx, &k), want)
	if want == "" {
		m.keys[k.ID] = k
	}
}

func (m *machine) findKey(rt *rapid.T) {
	hash := []byte{byte(rapid.IntRange(0, 3).Draw(rt, "hash"))}
	want := listed(m.keys, "", 0, func(k cove.Key) bool { return bytes.Equal(k.Hash, hash) })
	got, err := m.store.KeyByHash(m.ctx, hash)
	if len(want) == 0 {
		agree(rt, err, cove.NotFound)
	} else {
		agree(rt, err, "")
		same(rt, got, want[0])
	}
	id := someID.Draw(rt, "id")
	byID, known := m.keys[id]
	if got, err = m.store.KeyByID(m.ctx, id); known {
		agree(rt, err, "")
		same(rt, got, &byID)
	} else {
		agree(rt, err, cove.NotFound)
	}
	same(rt, all(rt, m.store.Keys(m.ctx)), listed(m.keys, "", 0, func(cove.Key) bool { return true }))
}

func (m *machine) putTenant(rt *rapid.T) {
	tenant := cove.Tenant{Name: someTenant.Draw(rt, "name"), UpdatedAt: m.now}
	tenant.Quota.Sessions = rapid.IntRange(0, 9).Draw(rt, "sessions")
	agree(rt, m.store.PutTenant(m.ctx, &tenant), "")
	m.tenants[tenant.Name] = tenant
}

func (m *machine) getTenant(rt *rapid.T) {
	name := someTenant.Draw(rt, "name")
	got, err := m.store.GetTenant(m.ctx, name)
	want, exists := m.tenants[name]
	if !exists {
		agree(rt, err, cove.NotFound)
		return
	}
	agree(rt, err, "")
	same(rt, got, &want)
}

func (m *machine) addUsage(rt *rapid.T) {
	name := someTenant.Draw(rt, "name")
	by := cove.Consumption{
		CPU: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(rt, "time")), MemoryTime: rapid.Float64Range(0, 1e6).Draw(rt, "memory"),
		Held: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(rt, "held")), Executions: rapid.Int64Range(0, 9).Draw(rt, "executions"),
		Up: cove.Bytes(rapid.Int64Range(0, 1<<40).Draw(rt, "up")), Down: cove.Bytes(rapid.Int64Range(0, 1<<40).Draw(rt, "down")),
	}
	m.usage[name] = m.usage[name].Plus(by)
	sum, err := m.store.AddUsage(m.ctx, name, by)
	agree(rt, err, "")
	same(rt, sum, m.usage[name])
}

func (m *machine) putSnapshot(rt *rapid.T) {
	snap := cove.Snapshot{
		ID: someID.Draw(rt, "id"), Tenant: someTenant.Draw(rt, "tenant"), Session: someID.Draw(rt, "session"), CreatedAt: m.now,
	}
	agree(rt, m.store.PutSnapshot(m.ctx, &snap), "")
	m.snapshots[snap.ID] = snap
}

func (m *machine) listSnapshots(rt *rapid.T) {
	f := cove.SnapshotFilter{
		Tenant:  rapid.SampledFrom([]string{"", "acme"}).Draw(rt, "tenant"),
		Session: rapid.SampledFrom([]cove.ID{"", "", "a", "b"}).Draw(rt, "session"),
		After:   rapid.SampledFrom([]cove.ID{"", "b"}).Draw(rt, "after"), Limit: rapid.IntRange(0, 3).Draw(rt, "limit"),
	}
	want := listed(m.snapshots, f.After, f.Limit, func(s cove.Snapshot) bool {
		return (f.Tenant == "" || f.Tenant == s.Tenant) && (f.Session == "" || f.Session == s.Session)
	})
	same(rt, all(rt, m.store.Snapshots(m.ctx, f)), want)
	for _, snap := range want {
		got, err := m.store.GetSnapshot(m.ctx, snap.ID)
		agree(rt, err, "")
		same(rt, got, snap)
	}
}

func (m *machine) deleteSnapshot(rt *rapid.T) {
	id := someID.Draw(rt, "id")
	agree(rt, m.store.DeleteSnapshot(m.ctx, id), "")
	delete(m.snapshots, id)
	_, err := m.store.GetSnapshot(m.ctx, id)
	agree(rt, err, cove.NotFound)
}

func (m *machine) putRun(rt *rapid.T) {
	r := cove.Run{ID: someID.Draw(rt, "id"), State: someRun.Draw(rt, "state"), CreatedAt: m.now}
	agree(rt, m.store.PutRun(m.ctx, &r), "")
	m.runs[r.ID] = r
}

func (m *machine) listRuns(rt *rapid.T) {
	state := rapid.SampledFrom([]cove.RunState{"", cove.RunRunning, cove.RunFailed}).Draw(rt, "state")
	want := listed(m.runs, "", 0, func(r cove.Run) bool { return state == "" || state == r.State })
	same(rt, all(rt, m.store.Runs(m.ctx, cove.RunFilter{State: state})), want)
	for _, r := range want {
		got, err := m.store.GetRun(m.ctx, r.ID)
		agree(rt, err, "")
		same(rt, got, r)
	}
}

func (m *machine) deleteRun(rt *rapid.T) {
	id := someID.Draw(rt, "id")
	agree(rt, m.store.DeleteRun(m.ctx, id), "")
	delete(m.runs, id)
	_, err := m.store.GetRun(m.ctx, id)
	agree(rt, err, cove.NotFound)
}

// claim returns the key of some claim and the claim, if it is valid.
func (m *machine) claim(rt *rapid.T) ([2]string, *cove.Claim) {
	key := [2]string{someTenant.Draw(rt, "tenant"), someName.Draw(rt, "key")}
	if c, exists := m.claims[key]; exists && m.now.Before(c.ExpiresAt) {
		return key, &c
	}
	return key, nil
}

func (m *machine) takeClaim(rt *rapid.T) {
	key, want := m.claim(rt)
	c := cove.Claim{
		Tenant: key[0], Key: key[1], Digest: someName.Draw(rt, "digest"),
		ExpiresAt: m.now.Add(time.Duration(rapid.IntRange(1, 3).Draw(rt, "hours")) * time.Hour),
	}
	got, err := m.store.TakeClaim(m.ctx, c, m.now)
	agree(rt, err, "")
	same(rt, got, want)
	if want == nil {
		m.claims[key] = c
	}
}

func (m *machine) setClaim(rt *rapid.T) {
	key, valid := m.claim(rt)
	_, known := m.claims[key]
	switch {
	case valid != nil:
		valid.Result = someID.Draw(rt, "result")
		agree(rt, m.store.SetClaim(m.ctx, key[0], key[1], valid.Result), "")
		m.claims[key] = *valid
	case !known:
		agree(rt, m.store.SetClaim(m.ctx, key[0], key[1], "x"), cove.NotFound)
	}
}

func (m *machine) dropClaim(rt *rapid.T) {
	key, _ := m.claim(rt)
	agree(rt, m.store.DropClaim(m.ctx, key[0], key[1]), "")
	delete(m.claims, key)
}

func (m *machine) timePasses(rt *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 120).Draw(rt, "minutes")) * time.Minute)
}
