package msbapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/archive"
	"github.com/cove-sandbox/cove/internal/audit"
	"github.com/cove-sandbox/cove/internal/intake"
	"github.com/cove-sandbox/cove/internal/msbapi"
	"github.com/cove-sandbox/cove/internal/policy"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Keys of the rig: for everything, for one namespace, for one that may only look, for
// another tenant, and one that asks too often.
const (
	allKey    = "cove_all"
	teamKey   = "msb_team"
	lookKey   = "e2b_look"
	otherKey  = "msb_other"
	hastyKey  = "msb_hasty"
	brokenKey = "msb_broken"
	countKey  = "msb_count"
)

var principals = map[string]cove.Principal{
	allKey:   {Name: "all", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeAll}},
	teamKey:  {Name: "team", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeAll}, Limits: cove.KeyLimit{Namespace: "team"}},
	lookKey:  {Name: "look", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeRead}},
	countKey: {Name: "count", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeMetrics}},
	otherKey: {Name: "other", Tenant: "other", Scopes: []cove.Scope{cove.ScopeAll}, Limits: cove.KeyLimit{Namespace: cove.AllNamespaces}},
}

// rig is a server in front of an engine on the fake provider.
type rig struct {
	t      *testing.T
	engine *engine.Engine
	bodies *intake.Budget
	server *httptest.Server
	begun  atomic.Int32
	done   atomic.Int32
}

func serve(t *testing.T, change ...func(*engine.Config)) *rig {
	t.Helper()
	r := &rig{t: t, engine: newEngine(t, change...), bodies: intake.New()}
	face := msbapi.New(msbapi.Config{
		Platform:  func(p cove.Principal) cove.Platform { return r.engine.As(p) },
		Templates: func() []string { return []string{"node"} },
		Isolation: r.engine.Isolation,
		Authorize: r.engine.Authorize,
		Bodies:    r.bodies,
		Watch: func(ctx context.Context, _ cove.Principal) (context.Context, func()) {
			r.begun.Add(1)
			return ctx, func() { r.done.Add(1) }
		},
		Authenticate: func(_ context.Context, key string) (cove.Principal, func(), error) {
			switch p, ok := principals[key]; {
			case ok:
				return p, nil, nil
			case key == hastyKey:
				return cove.Principal{}, nil, cove.Errorf(cove.Exhausted, "too often").Reason(cove.ReasonRateLimited)
			case key == brokenKey:
				return cove.Principal{}, nil, cove.Errorf(cove.Internal, "the store is gone")
			}
			return cove.Principal{}, nil, cove.Errorf(cove.Unauthenticated, "no valid key was shown")
		},
	})
	r.server = httptest.NewServer(face)
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
		if r.begun.Load() != r.done.Load() {
			t.Errorf("%d requests were begun and %d are over", r.begun.Load(), r.done.Load())
		}
	})
	return r
}

// newEngine returns an engine that ends with the test.
func newEngine(t *testing.T, change ...func(*engine.Config)) *engine.Engine {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"fake", "output"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	keeper := fake.NewKeeper()
	provider, err := fake.New(fake.Config{Dir: filepath.Join(dir, "fake"), Keeper: keeper, Templates: []string{"base", "node"}})
	must(t, err)
	journal, err := audit.Open(audit.Config{Dir: filepath.Join(dir, "journal"), Node: "test"})
	must(t, err)
	archives, err := archive.Open(filepath.Join(dir, "archives"))
	must(t, err)
	output, err := os.OpenRoot(filepath.Join(dir, "output"))
	must(t, err)
	rules, err := policy.New(policy.Config{})
	must(t, err)
	cfg := engine.Config{
		Providers: []cove.Provider{provider}, Provider: provider.Name(), Policy: rules, Policies: rules.Profiles(),
		Store: memory.New(), Journal: journal, Archives: archives, Output: output, Node: "test",
		Kernels: map[string]cove.Kernels{"": fake.Kernels{Names: []string{"python", "node"}}}, Volumes: []string{dir + ":rw"},
	}
	for _, c := range change {
		c(&cfg)
	}
	e, err := engine.Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() {
		for _, err := range []error{e.Close(context.Background()), provider.Close(), journal.Close(), output.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
		keeper.Close()
	})
	return e
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// post sends a body with a key and returns the status and the answer.
func (r *rig) post(key, body string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.server.URL+msbapi.RPCPath, strings.NewReader(body))
	must(r.t, err)
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return r.send(req)
}

func (r *rig) send(req *http.Request) (int, string) {
	r.t.Helper()
	resp, err := http.DefaultClient.Do(req)
	must(r.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(r.t, err)
	return resp.StatusCode, string(text)
}

// ask asks for a method; params are JSON without the braces.
func (r *rig) ask(key, method, params string) (int, string) {
	r.t.Helper()
	return r.post(key, `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":{`+params+`}}`)
}

// result asks and demands an answer.
func (r *rig) result(method, params string) string {
	r.t.Helper()
	status, text := r.ask(allKey, method, params)
	var answer struct {
		Version string          `json:"jsonrpc"`
		Result  json.RawMessage `json:"result"`
		ID      int             `json:"id"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK || answer.Version != "2.0" || answer.ID != 7 {
		r.t.Fatalf("%s: status %d: %s", method, status, text)
	}
	return string(answer.Result)
}

// s1 is a sandbox in most tests.
const s1 = `"namespace":"default","sandbox":"s1"`

// started starts s1.
func (r *rig) started(config string) {
	r.t.Helper()
	if got := r.result("sandbox.start", s1+`,"config":{`+config+`}`); got != `"Sandbox s1 started successfully"` {
		r.t.Fatal(got)
	}
}

// leave sends a request, whose client goes when it is told to.
func (r *rig) leave(body string) (over <-chan struct{}, stop func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.server.URL+msbapi.RPCPath, strings.NewReader(body))
	must(r.t, err)
	req.Header.Set("Authorization", allKey)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	return done, cancel
}

// told is what stands around the rig's sandboxes, as clients are told.
const told = `{"boundary":"none","network":"hard","memory":"hard","cpu":"hard","pids":"hard","disk":"hard","files":"hard","policy":"soft"}`
