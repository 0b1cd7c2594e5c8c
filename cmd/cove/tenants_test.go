package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/docs"
)

// hammering is for how long tenants try to read each other's things.
func hammering() time.Duration {
	if testing.Short() {
		return 2 * time.Second // each route is tried many times in it
	}
	return time.Minute
}

// tenant is somebody with things that nobody else may see. Its word is in all of
// them.
type tenant struct {
	name, word, key string
	url             string
	platform        *client.Client
	session         cove.ID
	snapshot        cove.ID
	output          cove.OutputID
	pid             cove.PID
	keyID           cove.ID
}

// newTenant makes a tenant and its things. It may do everything that is not the
// operator's.
func newTenant(t *testing.T, admin *client.Client, url, name string) *tenant {
	t.Helper()
	ctx := t.Context()
	scopes := slices.DeleteFunc(cove.Scopes(), func(s cove.Scope) bool { return s == cove.ScopeAll || s == cove.ScopeAdmin })
	k, secret, err := admin.Admin().CreateKey(ctx, cove.KeyRequest{Name: name, Tenant: name, Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	me := &tenant{name: name, word: "word-of-" + name + "-" + string(cove.NewID()), key: secret, url: url, keyID: k.ID}
	if me.platform, err = client.New(url, secret); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = me.platform.Close() })
	s, err := me.platform.Sessions().Open(ctx, cove.OpenRequest{Spec: cove.Spec{
		User: "ada", Thread: "homework", Project: me.word, Metadata: map[string]string{"word": me.word}, // users of all tenants have the same names
	}})
	if err != nil {
		t.Fatal(err)
	}
	me.session = s.ID
	for name, times := range map[string]int{"kept": 1, "long": 2000} {
		if err := me.platform.Files(s.ID).Write(ctx, name, strings.NewReader(strings.Repeat(me.word+"\n", times)), 0); err != nil {
			t.Fatal(err)
		}
	}
	// It is more than fits into an answer, and so some stays behind.
	x, err := me.platform.Processes(s.ID).Exec(ctx, cove.ExecRequest{Argv: []string{"cat", "long"}})
	if err != nil || x.OutputID == "" {
		t.Fatalf("%+v, %v", x, err)
	}
	me.output = x.OutputID
	p, err := me.platform.Processes(s.ID).Start(ctx, cove.ExecRequest{Argv: []string{"sh", "-c", "cat kept; read end"}, KeepStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	me.pid = p.PID
	me.snapshot = me.save(t)
	return me
}

// save takes a snapshot, and returns its id.
func (me *tenant) save(t *testing.T) cove.ID {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, me.url+"/api/sandboxes/"+string(me.session)+"/snapshot", strings.NewReader(`{"name":"`+me.word+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", me.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var shot struct {
		ID cove.ID `json:"snapshot_id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&shot); err != nil || shot.ID == "" {
		t.Fatalf("snapshot: %s, %v", resp.Status, err)
	}
	return shot.ID
}

// road is one route of the API.
type road struct{ method, pattern string }

// roads are all routes that the server describes.
func roads(t *testing.T) []road {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(docs.OpenAPI()), &doc); err != nil {
		t.Fatal(err)
	}
	var all []road
	for pattern, methods := range doc.Paths {
		for m := range methods {
			if m = strings.ToUpper(m); slices.Contains([]string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete}, m) {
				all = append(all, road{m, pattern})
			}
		}
	}
	if len(all) < 50 {
		t.Fatalf("only %d routes", len(all))
	}
	return all
}

// named reports whether a route is about one thing, which has an owner.
func (r road) named() bool { return strings.Contains(r.pattern, "{") }

// body is what a request on the way to another's things has.
func (r road) body(of *tenant) string {
	switch r.method + " " + strings.TrimPrefix(r.pattern, "/api/sandboxes/{id}") {
	case "POST /execute", "POST /processes", "POST /trial":
		return `{"command":"cat kept"}`
	case "POST /code":
		return `{"language":"bash","code":"cat kept"}`
	case "POST /api/code":
		return `{"language":"bash","code":"cat kept","session_id":"` + string(of.session) + `"}`
	case "POST /contexts":
		return `{"language":"bash"}`
	case "POST /files/move":
		return `{"from":"kept","to":"moved"}`
	case "POST /files/mkdir":
		return `{"path":"kept"}`
	case "PUT /network":
		return `{"mode":"none"}`
	case "POST /processes/{pid}/input":
		return `{"data":"end\n"}`
	case "POST /processes/{pid}/signal":
		return `{"signal":"KILL"}`
	case "POST /processes/{pid}/resize":
		return `{"rows":1,"cols":1}`
	case "POST /api/sandboxes":
		return `{"snapshot":"` + string(of.snapshot) + `","metadata":{"a":"b"}}`
	case "PUT /archive":
		return strings.Repeat("\x00", 1024) // an empty tar
	case "PUT /files":
		return "stolen"
	}
	return "{}"
}

// address is where a route leads to another's things.
func (r road) address(of *tenant) string {
	path := strings.NewReplacer(
		"{id}", string(of.session), "{snapshot}", string(of.snapshot), "{output}", string(of.output), "{pid}", fmt.Sprint(of.pid),
		"{key}", string(of.keyID), "{tenant}", of.name, "{run}", string(of.session), "{context}", "bash", "{port}", "8000",
	).Replace(r.pattern)
	switch {
	case strings.HasSuffix(r.pattern, "/files"), strings.HasSuffix(r.pattern, "/files/stat"):
		path += "?path=kept"
	case strings.HasSuffix(r.pattern, "/archive"), strings.HasSuffix(r.pattern, "/files/list"), strings.HasSuffix(r.pattern, "/files/watch"):
		path += "?path=."
	}
	return of.url + path
}

// try goes one way to another's things and says what is wrong with the answer.
func (me *tenant) try(ctx context.Context, c *http.Client, r road, other *tenant) error {
	var body io.Reader
	if r.method != http.MethodGet && r.method != http.MethodDelete {
		body = strings.NewReader(r.body(other))
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.address(other), body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+me.key)
	switch {
	case strings.HasSuffix(r.pattern, "/connect"):
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "tcp")
	case strings.HasSuffix(r.pattern, "/terminal"):
		for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
			req.Header.Set(name, value)
		}
	case rand.IntN(2) == 0:
		req.Header.Set("Accept", "text/event-stream")
	}
	resp, err := c.Do(req)
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return fmt.Errorf("%s lets in", resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("broken answer: %w", err)
	}
	return r.judge(resp.StatusCode, text, other)
}

// judge says what is wrong with an answer on the way to another's things.
func (r road) judge(status int, text []byte, other *tenant) error {
	switch {
	case bytes.Contains(text, []byte(other.word)):
		return fmt.Errorf("%d with another's word: %.300s", status, text)
	case status >= 500 && status != http.StatusNotImplemented:
		return fmt.Errorf("%d: %.300s", status, text)
	case r.pattern == "/api/events":
		// Its own lines name what it tried to reach.
		if bytes.Contains(text, []byte(`"tenant":"`+other.name+`"`)) {
			return fmt.Errorf("%d with another's lines: %.300s", status, text)
		}
	case !r.named() && status < 300 && r.method == http.MethodGet && bytes.Contains(text, []byte(other.session)):
		return fmt.Errorf("%d with another's session: %.300s", status, text)
	case r.pattern == "/api/runs/{run}/status":
		// Which says of a run that is not there that it is not.
		if status != http.StatusOK || !bytes.Contains(text, []byte(`"status":"not_found"`)) {
			return fmt.Errorf("%d: %.300s", status, text)
		}
	case r.named() && status < 400:
		return fmt.Errorf("%d: %.300s", status, text)
	case strings.HasPrefix(r.pattern, "/api/sandboxes/{id}") && r.body(other) != "{}" && status != http.StatusNotFound:
		return fmt.Errorf("%d in the place of 404: %.300s", status, text)
	}
	return nil
}

// own uses all that is its own. Everything must be there.
func (me *tenant) own(ctx context.Context) error {
	says := func(what, got string, err error) error {
		if err == nil && !strings.Contains(got, me.word) {
			err = fmt.Errorf("%.200q", got)
		}
		if err != nil {
			return fmt.Errorf("its own %s: %w", what, err)
		}
		return nil
	}
	r, err := me.platform.Files(me.session).Read(ctx, "kept", 0, 0)
	if err != nil {
		return says("file", "", err)
	}
	data, err := io.ReadAll(r)
	_ = r.Close() // it was read to its end
	if err := says("file", string(data), err); err != nil {
		return err
	}
	x, err := me.platform.Processes(me.session).Exec(ctx, cove.ExecRequest{Argv: []string{"cat", "kept"}})
	if err != nil {
		return says("program", "", err)
	}
	if err := says("program", string(x.Stdout.Data), nil); err != nil {
		return err
	}
	s, err := me.platform.Sessions().Open(ctx, cove.OpenRequest{Spec: cove.Spec{User: "ada", Thread: "homework"}})
	if err == nil && (s.ID != me.session || s.State != cove.Running) {
		err = fmt.Errorf("%s, which is %s", s.ID, s.State)
	}
	if err != nil {
		return says("session", "", err)
	}
	if err := says("session", s.Spec.Metadata["word"], nil); err != nil {
		return err
	}
	page, err := me.platform.Processes(me.session).Output(ctx, me.output, cove.OutputRange{Limit: 4096})
	if err != nil {
		return says("output", "", err)
	}
	return says("output", string(page.Data), nil)
}

// Two tenants know all ids of each other and try them on every route, while they
// use their own things.
func TestTenantsHammerEachOther(t *testing.T) {
	provider := "fake"
	if ready, err := localReady(); err != nil {
		t.Fatal(err)
	} else if ready {
		provider = "local"
	}
	home := filepath.Join(t.TempDir(), "home")
	end := server(t, home, provider)
	at, _ := serving(home)
	admin := connect(t, home)
	one, two := newTenant(t, admin, at.Address, "acme"), newTenant(t, admin, at.Address, "globex")
	ctx, stop := context.WithTimeout(t.Context(), hammering())
	defer stop()
	hammer(ctx, t, one, two)
	afterwards(t, one, two)
	end(syscall.SIGTERM)
	nothingLeft(t, home, []*living{{id: one.session}, {id: two.session}})
}

// hammer has two tenants try each other's things on every route while they use their own,
// until ctx ends.
func hammer(ctx context.Context, t *testing.T, one, two *tenant) {
	t.Helper()
	all := roads(t)
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer c.CloseIdleConnections()

	var tries, reads, wrong atomic.Int64
	note := func(who *tenant, what string, err error) {
		if err != nil && ctx.Err() == nil && wrong.Add(1) < 20 {
			t.Errorf("%s: %s: %v", who.name, what, err)
		}
	}
	var wg sync.WaitGroup
	for _, pair := range [][2]*tenant{{one, two}, {two, one}} {
		me, other := pair[0], pair[1]
		for range 3 {
			wg.Go(func() {
				for ctx.Err() == nil {
					for _, i := range rand.Perm(len(all)) {
						note(me, all[i].method+" "+all[i].pattern, me.try(ctx, c, all[i], other))
						tries.Add(1)
					}
				}
			})
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				note(me, "reads", me.own(ctx))
				reads.Add(1)
			}
		})
	}
	wg.Wait()
	t.Logf("%d tries on %d routes, %d times all of its own", tries.Load(), len(all), reads.Load())
	if tries.Load() < int64(len(all)) || reads.Load() < 4 {
		t.Error("too few to show anything")
	}
}

// afterwards checks that tenants still have their own things, and closes their sessions.
func afterwards(t *testing.T, tenants ...*tenant) {
	t.Helper()
	for _, me := range tenants {
		if err := me.own(t.Context()); err != nil {
			t.Errorf("%s afterwards: %v", me.name, err)
		}
		me.closeAll(t)
	}
}

// closeAll closes all sessions of a tenant.
func (me *tenant) closeAll(t *testing.T) {
	t.Helper()
	for s, err := range me.platform.Sessions().List(t.Context(), cove.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		// The session of a tool that was left in the middle ends by itself.
		if _, err := me.platform.Sessions().Close(t.Context(), s.ID, false); err != nil && !errors.Is(err, cove.NotFound) {
			t.Error(err)
		}
	}
}
