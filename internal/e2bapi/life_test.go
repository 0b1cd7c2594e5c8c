package e2bapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/e2bapi"
	"github.com/cove-sandbox/cove/provider/fake"
)

// ends returns how long a sandbox has from now on.
func (r *rig) ends(id cove.ID) time.Duration { return time.Until(r.session(id).ExpiresAt) }

// about reports whether a time is as long as it should be, but for how long calls take.
func about(got, want time.Duration) bool { return got <= want && got > want-30*time.Second }

func TestTimeout(t *testing.T) {
	r := serve(t)
	id := r.create(`{"timeout":300}`)
	at := "/sandboxes/" + string(id)
	for _, c := range []struct {
		status     int
		path, body string
		want       time.Duration
	}{
		{http.StatusOK, "/connect", `{"timeout":60}`, 300 * time.Second},
		{http.StatusOK, "/connect", `{"timeout":600}`, 600 * time.Second},
		{http.StatusNoContent, "/refreshes", `{"duration":60}`, 600 * time.Second},
		{http.StatusNoContent, "/refreshes", `{"duration":900}`, 900 * time.Second},
		{http.StatusNoContent, "/timeout", `{"timeout":120}`, 120 * time.Second},
		{http.StatusNoContent, "/timeout", `{"timeout":360000}`, 360000 * time.Second},
		{http.StatusNoContent, "/timeout", `{"timeout":40}`, 40 * time.Second},
		{http.StatusNoContent, "/refreshes", ``, 300 * time.Second},
	} {
		r.wants(c.status, nil, "POST", at+c.path, c.body)
		if got := r.ends(id); !about(got, c.want) {
			t.Errorf("%s %s: it ends in %s; want %s", c.path, c.body, got, c.want)
		}
	}
	r.refuses(http.StatusBadRequest, "timeout", "POST", at+"/timeout", `{}`)
	r.refuses(http.StatusBadRequest, "timeout", "POST", at+"/timeout", `{"timeout":-1}`)
	r.refuses(http.StatusBadRequest, "not the JSON", "POST", at+"/timeout", `{"timeout":{}}`)
	r.refuses(http.StatusBadRequest, "not the JSON", "POST", at+"/refreshes", `x`)
	r.refuses(http.StatusBadRequest, "timeout", "POST", at+"/connect", `{"timeout":-1}`)
	r.refuses(http.StatusBadRequest, "not the JSON", "POST", at+"/connect", `x`)
	r.refuses(http.StatusConflict, "runs already", "POST", at+"/resume", `{"timeout":3600}`)
	if got := r.ends(id); !about(got, 300*time.Second) {
		t.Errorf("a call that was refused had it end in %s", got)
	}
}

// atPause is a provider's hook that tells of a pause and holds it.
func atPause(begun chan<- struct{}, goOn <-chan struct{}) func(*fake.Config) {
	return func(c *fake.Config) {
		c.Hook = func(step string, _ cove.ID) error {
			if step == "pause" {
				begun <- struct{}{}
				<-goOn
			}
			return nil
		}
	}
}

// TestConnectAtTheEnd: who connects while a sandbox is paused because its time is up gets
// one that runs.
func TestConnectAtTheEnd(t *testing.T) {
	begun, goOn, renews := make(chan struct{}, 1), make(chan struct{}), make(chan struct{}, 9)
	r := serveWith(t, rigOptions{fake: atPause(begun, goOn), face: beforeRenew(func(context.Context, cove.Platform, cove.ID) { renews <- struct{}{} })})
	id := r.create(`{"timeout":3600,"autoPause":true}`)
	must(r.platform().Sessions().Renew(t.Context(), id, time.Millisecond))(t)
	<-begun
	go func() {
		<-renews
		close(goOn)
	}()
	r.wants(http.StatusCreated, nil, "POST", "/sandboxes/"+string(id)+"/connect", `{"timeout":600}`)
	if s := r.session(id); s.State != cove.Running || !about(time.Until(s.ExpiresAt), 600*time.Second) {
		t.Errorf("it is %s until %s", s.State, s.ExpiresAt)
	}
	r.health(id, http.StatusNoContent)
}

// TestConnectWhilePaused: what somebody pauses between a look and the renewal is woken,
// and one that rests again and again is not said to run.
func TestConnectWhilePaused(t *testing.T) {
	var pauses atomic.Int32
	r := serve(t, beforeRenew(func(ctx context.Context, p cove.Platform, id cove.ID) {
		if pauses.Load() > 0 {
			pauses.Add(-1)
			must(p.Snapshots().Pause(ctx, id))(t)
		}
	}))
	id := r.create(`{"timeout":300}`)
	at := "/sandboxes/" + string(id)
	pauses.Store(1)
	r.wants(http.StatusCreated, nil, "POST", at+"/connect", `{"timeout":600}`)
	if s := r.session(id); s.State != cove.Running {
		t.Errorf("it is %s", s.State)
	}
	pauses.Store(1)
	r.refuses(http.StatusNotFound, "paused", "POST", at+"/timeout", `{"timeout":900}`)
	pauses.Store(1000)
	r.refuses(http.StatusConflict, "as often as it is resumed", "POST", at+"/connect", `{"timeout":600}`)
	if n := 1000 - pauses.Load(); n > 10 {
		t.Errorf("it was woken %d times", n)
	}
}

// beforeRenew has something happen between a call's look at a sandbox and its renewal.
func beforeRenew(do func(context.Context, cove.Platform, cove.ID)) func(*e2bapi.Config) {
	return func(c *e2bapi.Config) {
		platform := c.Platform
		c.Platform = func(p cove.Principal) cove.Platform { return meddled{platform(p), do} }
	}
}

type meddled struct {
	cove.Platform

	do func(context.Context, cove.Platform, cove.ID)
}

func (m meddled) Sessions() cove.Sessions { return meddledSessions{m.Platform.Sessions(), m} }

type meddledSessions struct {
	cove.Sessions

	m meddled
}

func (s meddledSessions) Renew(ctx context.Context, id cove.ID, d time.Duration) (*cove.Session, error) {
	s.m.do(ctx, s.m.Platform, id)
	return s.Sessions.Renew(ctx, id, d)
}

func TestPause(t *testing.T) {
	r := serve(t)
	id := r.create(`{"timeout":300}`)
	at := "/sandboxes/" + string(id)
	for _, c := range []struct {
		pause, connect string
		path           string
		state          cove.State
	}{
		{``, `{"timeout":30}`, "/sandboxes/%s/connect", cove.Paused},
		{`{"memory":false}`, `{}`, "/v2/sandboxes/%s/connect", cove.Stopped},
		{`{"memory":true}`, `{"memory":false}`, "/v2/sandboxes/%s/connect", cove.Paused},
		{`{"require_healthy_guest":true}`, `{"timeout":60}`, "/sandboxes/%s/resume", cove.Paused},
	} {
		r.wants(http.StatusNoContent, nil, "POST", at+"/pause", c.pause)
		if s := r.session(id); s.State != c.state {
			t.Fatalf("paused with %s it is %s; want %s", c.pause, s.State, c.state)
		}
		r.refuses(http.StatusConflict, "paused already", "POST", at+"/pause", c.pause)
		r.refuses(http.StatusNotFound, "paused", "POST", at+"/timeout", `{"timeout":5}`)
		var list []struct{ State string }
		r.wants(http.StatusOK, &list, "GET", "/v2/sandboxes", "")
		if len(list) != 1 || list[0].State != "paused" {
			t.Errorf("listed as %+v", list)
		}
		var none []object
		r.wants(http.StatusOK, &none, "GET", at+"/metrics", "")
		if len(none) > 0 {
			t.Errorf("one that is paused uses %v", none)
		}
		r.health(id, http.StatusBadGateway)
		r.wants(http.StatusCreated, nil, "POST", fmt.Sprintf(c.path, id), c.connect)
		r.health(id, http.StatusNoContent)
		if s := r.session(id); s.State != cove.Running {
			t.Errorf("connected to with %s it is %s", c.connect, s.State)
		}
	}
	r.refuses(http.StatusBadRequest, "not the JSON", "POST", at+"/pause", `[]`)
	r.wants(http.StatusNoContent, nil, "POST", at+"/pause", `{}`)
	r.wants(http.StatusCreated, nil, "POST", at+"/connect", `{"timeout":30}`)
	if got := r.ends(id); !about(got, 30*time.Second) {
		t.Errorf("one that came back for 30s ends in %s", got)
	}
}

// health asks a sandbox whether it runs, without a token.
func (r *rig) health(id cove.ID, want int) {
	r.t.Helper()
	got, text, _ := r.read(r.inside(r.t.Context(), id, 49983, "GET", "/health", nil, "X-Access-Token", ""))
	if got != want {
		r.t.Errorf("health is %d %s; want %d", got, text, want)
	}
	if want == http.StatusBadGateway && text != fmt.Sprintf(`{"sandboxId":%q,"code":502,"message":"The sandbox was not found"}`, id) {
		r.t.Errorf("one that is not there says %s", text)
	}
}

// TestNoMemory: what the provider cannot keep is refused and not thrown away.
func TestNoMemory(t *testing.T) {
	r := serveWith(t, rigOptions{fake: func(c *fake.Config) { c.Powers = without(cove.PowerPause) }})
	id := r.create(`{}`)
	r.refuses(http.StatusBadRequest, "provider fake cannot keep the memory of a sandbox; pause it without", "POST", "/sandboxes/"+string(id)+"/pause", `{}`)
	if s := r.session(id); s.State != cove.Running {
		t.Errorf("it is %s", s.State)
	}
	r.wants(http.StatusNoContent, nil, "POST", "/sandboxes/"+string(id)+"/pause", `{"memory":false}`)
}

// TestEvictedSandboxesComeBack: clients of E2B know no sandbox that a server stopped for
// room. One that they paused stays paused.
func TestEvictedSandboxesComeBack(t *testing.T) {
	r := serveWith(t, rigOptions{engine: func(c *engine.Config) { c.MaxSessions, c.Evict = 1, true }})
	a := r.create(`{}`)
	r.putFile(a, "f", "kept")
	b := r.create(`{}`)
	if s := r.session(a); s.State != cove.Stopped || s.Spec.OnEnd != cove.EndClose {
		t.Fatalf("the evicted sandbox is %s, and at its end %q", s.State, s.Spec.OnEnd)
	}
	fetch := func(id cove.ID) int {
		status, _, _ := r.read(r.inside(t.Context(), id, 49983, "GET", "/files?path=/home/user/f", nil))
		return status
	}
	if got := fetch(a); got != http.StatusOK {
		t.Errorf("a file of the evicted sandbox: %d", got)
	}
	r.wants(http.StatusNoContent, nil, "POST", "/sandboxes/"+string(a)+"/pause", `{}`)
	r.putFile(b, "f", "kept")
	if got := fetch(a); got == http.StatusOK || r.session(a).State != cove.Stopped {
		t.Errorf("a file of the paused and evicted sandbox: %d, and it is %s", got, r.session(a).State)
	}
	r.wants(http.StatusCreated, nil, "POST", "/sandboxes/"+string(a)+"/connect", `{"timeout":30}`)
	if got := fetch(a); got != http.StatusOK {
		t.Errorf("a file after it was connected: %d", got)
	}
}

func TestKill(t *testing.T) {
	r := serve(t)
	id := r.create(`{}`)
	at := "/sandboxes/" + string(id)
	r.health(id, http.StatusNoContent)
	r.wants(http.StatusNoContent, nil, "DELETE", at, "")
	r.refuses(http.StatusNotFound, "", "DELETE", at, "")
	r.refuses(http.StatusNotFound, "", "GET", at, "")
	r.refuses(http.StatusNotFound, "", "POST", at+"/connect", `{"timeout":5}`)
	r.refuses(http.StatusNotFound, "", "POST", at+"/pause", `{}`)
	r.health(id, http.StatusBadGateway)
	r.health(cove.NewID(), http.StatusBadGateway)
}

func TestMetrics(t *testing.T) {
	r := serve(t)
	id, idle := r.create(`{}`), r.create(`{}`)
	var list []struct {
		CPUCount      int
		CPUUsedPct    float64
		MemTotal      int64
		TimestampUnix int64
		Timestamp     time.Time
	}
	at := "/sandboxes/" + string(id) + "/metrics"
	for range 2 {
		r.wants(http.StatusOK, &list, "GET", at, "")
		if len(list) != 1 || list[0].CPUCount < 1 || list[0].CPUUsedPct < 0 || list[0].MemTotal < 1 || list[0].Timestamp.Unix() != list[0].TimestampUnix {
			t.Fatalf("%+v", list)
		}
	}
	now := time.Now().Unix()
	for query, want := range map[string]int{
		fmt.Sprintf("?start=%d&end=%d", now-60, now): 1,
		fmt.Sprintf("?end=%d", now-3600):             0,
		fmt.Sprintf("?start=%d", now+3600):           0,
	} {
		r.wants(http.StatusOK, &list, "GET", at+query, "")
		if len(list) != want {
			t.Errorf("%s: %+v", query, list)
		}
	}
	r.refuses(http.StatusBadRequest, "start", "GET", at+"?start=x", "")
	r.wants(http.StatusNoContent, nil, "POST", "/sandboxes/"+string(idle)+"/pause", `{}`)
	var many struct{ Sandboxes map[string]object }
	r.wants(http.StatusOK, &many, "GET", fmt.Sprintf("/sandboxes/metrics?sandbox_ids=%s,%s,%s,x", id, idle, cove.NewID()), "")
	if len(many.Sandboxes) != 1 || many.Sandboxes[string(id)] == nil {
		t.Errorf("%+v", many)
	}
	r.refuses(http.StatusBadRequest, "sandbox_ids", "GET", "/sandboxes/metrics?sandbox_ids="+strings.Repeat("x,", 100), "")
}

func (r *rig) putFile(id cove.ID, name, text string) {
	r.t.Helper()
	if err := r.platform().Files(id).Write(r.t.Context(), name, strings.NewReader(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) hasFile(id cove.ID, name string) bool {
	r.t.Helper()
	_, err := r.platform().Files(id).Stat(r.t.Context(), name)
	return err == nil
}

func TestSnapshots(t *testing.T) {
	r := serve(t)
	id := r.create(`{"templateID":"python"}`)
	at := "/sandboxes/" + string(id) + "/snapshots"
	type answer struct {
		SnapshotID string
		Names      []string
	}
	var made []answer
	for _, body := range []string{`{"name":"first"}`, `{"name":"first"}`, ``} {
		r.putFile(id, fmt.Sprintf("/workspace/%d", len(made)), "x")
		var one answer
		r.wants(http.StatusCreated, &one, "POST", at, body)
		made = append([]answer{one}, made...)
	}
	if made[2].Names[0] != "first" || len(made[0].Names) != 0 {
		t.Errorf("%+v", made)
	}
	shown := func(query string) (ids []string, next string) {
		var list []answer
		next = r.wants(http.StatusOK, &list, "GET", "/snapshots?"+query, "").Get("X-Next-Token")
		for _, s := range list {
			ids = append(ids, s.SnapshotID)
		}
		return ids, next
	}
	for query, want := range map[string][]answer{"": made, "sandboxID=" + string(id): made, "name=first": made[1:], "name=none": nil, "sandboxID=" + string(cove.NewID()): nil} {
		ids, next := shown(query)
		if len(ids) != len(want) || next != "" {
			t.Errorf("%s shows %v", query, ids)
		}
		for i := range ids {
			if ids[i] != want[i].SnapshotID {
				t.Errorf("%s shows %v; want %v", query, ids, want)
			}
		}
	}
	first, next := shown("limit=2")
	rest, last := shown("limit=2&nextToken=" + next)
	if len(first) != 2 || len(rest) != 1 || rest[0] != made[2].SnapshotID || last != "" {
		t.Errorf("pages are %v and %v", first, rest)
	}
	byName, byID := r.create(`{"templateID":"first"}`), r.create(`{"templateID":"`+made[2].SnapshotID+`"}`)
	if !r.hasFile(byName, "/workspace/1") || r.hasFile(byName, "/workspace/2") || !r.hasFile(byID, "/workspace/0") || r.hasFile(byID, "/workspace/1") {
		t.Error("the files are not those of the snapshots")
	}
	var info object
	r.wants(http.StatusOK, &info, "GET", "/sandboxes/"+string(byID), "")
	if info["templateID"] != made[2].SnapshotID || info["alias"] != "python" {
		t.Errorf("%v", info)
	}
	r.wants(http.StatusNoContent, nil, "DELETE", "/templates/"+made[0].SnapshotID, "")
	r.refuses(http.StatusNotFound, "", "DELETE", "/templates/"+made[0].SnapshotID, "")
	r.wants(http.StatusNoContent, nil, "DELETE", "/templates/first", "")
	if ids, _ := shown(""); len(ids) != 1 || ids[0] != made[2].SnapshotID {
		t.Errorf("left are %v", ids)
	}
	r.refuses(http.StatusBadRequest, "not the JSON", "POST", at, `{"name":1}`)
	r.refuses(http.StatusBadRequest, "limit", "GET", "/snapshots?limit=-1", "")
	r.refuses(http.StatusNotFound, "", "GET", "/snapshots?sandboxID=x", "")
}

func TestFork(t *testing.T) {
	r := serve(t)
	id := r.create(`{"metadata":{"k":"v"}}`)
	r.putFile(id, "/workspace/f", "x")
	at := "/sandboxes/" + string(id) + "/fork"
	type result struct {
		Sandbox *struct {
			SandboxID       cove.ID
			EnvdAccessToken string
		}
		Error *struct {
			Code    int
			Message string
		}
	}
	var made, again []result
	r.wants(http.StatusCreated, &made, "POST", at, `{"count":3,"timeout":60}`, "Idempotency-Key", "f")
	r.wants(http.StatusCreated, &again, "POST", at, `{"count":3,"timeout":60}`, "Idempotency-Key", "f")
	seen := map[cove.ID]bool{id: true}
	for i, m := range made {
		switch {
		case m.Error != nil || m.Sandbox == nil:
			t.Fatalf("%+v", m)
		case seen[m.Sandbox.SandboxID] || m.Sandbox.EnvdAccessToken != r.token(m.Sandbox.SandboxID):
			t.Errorf("%+v", m.Sandbox)
		case again[i].Sandbox.SandboxID != m.Sandbox.SandboxID:
			t.Error("the same request made another copy")
		}
		seen[m.Sandbox.SandboxID] = true
		if s := r.session(m.Sandbox.SandboxID); !r.hasFile(s.ID, "/workspace/f") || s.Spec.Metadata["k"] != "v" || !about(time.Until(s.ExpiresAt), time.Minute) {
			t.Errorf("the copy is %+v", s)
		}
	}
	if len(made) != 3 {
		t.Errorf("%d copies", len(made))
	}
	r.refuses(http.StatusBadRequest, "count", "POST", at, `{"count":0}`)
	r.refuses(http.StatusBadRequest, "count", "POST", at, `{"count":17}`)
	r.refuses(http.StatusBadRequest, "timeout", "POST", at, `{"timeout":-2}`)
	r.refuses(http.StatusBadRequest, "not the JSON", "POST", at, `{"count":"3"}`)
}

func TestForkUnsupported(t *testing.T) {
	r := serveWith(t, rigOptions{fake: func(c *fake.Config) { c.Powers = without(cove.PowerFork) }})
	id := r.create(`{}`)
	var made []struct {
		Error *struct {
			Code    int
			Message string
		}
	}
	r.wants(http.StatusCreated, &made, "POST", "/sandboxes/"+string(id)+"/fork", `{"count":2}`)
	if len(made) != 2 || made[0].Error == nil || made[1].Error.Code != http.StatusBadRequest || made[1].Error.Message == "" {
		t.Errorf("%+v", made)
	}
}

// TestOwner: a call that needs no token acts for the key that opened the session, as that key is now.
func TestOwner(t *testing.T) {
	revoked := false
	r := serve(t, func(c *e2bapi.Config) {
		owner := c.Owner
		c.Owner = func(ctx context.Context, id cove.ID) (cove.Principal, func(), error) {
			if revoked {
				return cove.Principal{}, nil, cove.Errorf(cove.Unauthenticated, "the key was revoked")
			}
			return owner(ctx, id)
		}
	})
	id := r.create(`{}`)
	r.health(id, http.StatusNoContent)
	revoked = true
	r.health(id, http.StatusUnauthorized)
}
