package mcpserver_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/archive"
	"github.com/cove-sandbox/cove/internal/audit"
	"github.com/cove-sandbox/cove/internal/mcpserver"
	"github.com/cove-sandbox/cove/internal/policy"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an engine with pretended sandboxes.
type world struct {
	*engine.Engine

	t *testing.T
}

func newWorld(t *testing.T, change ...func(*engine.Config)) *world {
	t.Helper()
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(dir, "output"), 0o700))
	output, err := os.OpenRoot(filepath.Join(dir, "output"))
	must(err)
	journal, err := audit.Open(audit.Config{Dir: filepath.Join(dir, "journal"), Node: "test"})
	must(err)
	provider, err := fake.New(fake.Config{Dir: filepath.Join(dir, "fake")})
	must(err)
	archives, err := archive.Open(filepath.Join(dir, "archives"))
	must(err)
	rules, err := policy.New(policy.Config{})
	must(err)
	store := memory.New()
	cfg := engine.Config{
		Providers: []cove.Provider{provider}, Provider: provider.Name(), Policy: rules, Policies: rules.Profiles(), Store: store, Journal: journal,
		Archives: archives, Output: output, Node: "test", Kernels: map[string]cove.Kernels{"": fake.Kernels{Names: []string{"python", "node"}}},
		Runners: map[string]cove.Runner{"": fake.Runner{}}, Datasets: fake.Datasets{}, Analyzers: map[string]cove.Analyzer{"": fake.Analyzer{}},
	}
	for _, c := range change {
		c(&cfg)
	}
	e, err := engine.Open(t.Context(), cfg)
	must(err)
	t.Cleanup(func() {
		ctx := context.Background()
		for _, err := range []error{e.Close(ctx), provider.Close(), journal.Close(), output.Close(), store.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return &world{e, t}
}

// boss may do everything in the default tenant.
var boss = cove.Principal{Name: "boss", Tenant: cove.DefaultTenant, Scopes: []cove.Scope{cove.ScopeAll}}

// client is a connected client.
type client struct {
	*mcp.ClientSession

	t *testing.T
}

// stdio connects a client over a pair of streams. end closes them as a client that
// goes away does, and returns how the server ended.
func stdio(t *testing.T, cfg mcpserver.Config, p cove.Platform, o *mcp.ClientOptions) (c client, end func() error) {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := mcpserver.Stdio(context.Background(), cfg, p, fromClient, toClient)
		_ = toClient.Close()
		served <- err
	}()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).
		Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	end = sync.OnceValue(func() error {
		_ = toServer.Close()
		err := <-served
		_ = session.Close()
		return err
	})
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return client{session, t}, end
}

// web is a server over HTTP, whose keys are the names of principals.
type web struct {
	*httptest.Server

	t       *testing.T
	handler *mcpserver.Handler

	mu    sync.Mutex
	known map[string]cove.Principal // guarded by mu
	under int                       // requests that are not over; guarded by mu
}

func serve(t *testing.T, cfg mcpserver.Config, platform func(cove.Principal) cove.Platform) *web {
	t.Helper()
	w := &web{t: t, known: map[string]cove.Principal{
		"boss":  boss,
		"other": {Name: "other", Tenant: "other", Scopes: []cove.Scope{cove.ScopeAll}},
		"none":  {Name: "none", Tenant: cove.DefaultTenant},
	}}
	w.handler = mcpserver.HTTP(cfg, platform, w.who)
	w.Server = httptest.NewServer(w.handler)
	t.Cleanup(func() {
		if err := w.handler.Close(context.Background()); err != nil {
			t.Error(err)
		}
		w.CloseClientConnections()
		w.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.under != 0 {
			t.Errorf("%d requests are not over", w.under)
		}
	})
	return w
}

// underWay is how many requests are not over.
func (w *web) underWay() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.under
}

func (w *web) who(r *http.Request) (cove.Principal, func(), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := r.Header.Get("X-Api-Key")
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		key = bearer
	}
	switch p, ok := w.known[key]; {
	case key == "busy":
		return cove.Principal{}, nil, cove.Errorf(cove.Exhausted, "too often").With("retry_after", 7)
	case !ok:
		return cove.Principal{}, nil, cove.Errorf(cove.Unauthenticated, "no valid key was shown").Remedy("send one")
	default:
		w.under++
		return p, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.under--
		}, nil
	}
}

// withKey adds a key to every request.
type withKey struct {
	key  string
	next http.RoundTripper
}

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+k.key)
	return k.next.RoundTrip(r)
}

// connect connects a client with a key.
func (w *web) connect(key string, o *mcp.ClientOptions) client {
	w.t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(w.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: w.URL, HTTPClient: &http.Client{Transport: withKey{key, w.Client().Transport}}, MaxRetries: -1,
	}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = session.Close() })
	return client{session, w.t}
}

// said is what a tool answered.
type said struct {
	text   string
	images int
	links  int
	failed bool
	value  map[string]any
}

func saidOf(t *testing.T, r *mcp.CallToolResult) said {
	t.Helper()
	s := said{failed: r.IsError}
	for _, c := range r.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			s.text += c.Text
		case *mcp.ImageContent:
			s.images++
		case *mcp.ResourceLink:
			s.links++
		}
	}
	raw, err := json.Marshal(r.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &s.value); err != nil {
		t.Fatal(err)
	}
	return s
}

type args = map[string]any

func (c client) call(tool string, a args) said {
	c.t.Helper()
	r, err := c.CallTool(c.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: a})
	if err != nil {
		c.t.Fatalf("%s %v: %v", tool, a, err)
	}
	return saidOf(c.t, r)
}

// fails calls a tool that must answer with an error of a code.
func (c client) fails(code cove.Code, tool string, a args) said {
	c.t.Helper()
	s := c.call(tool, a)
	fault, _ := s.value["error"].(map[string]any)
	if !s.failed || fault["code"] != string(code) || s.text == "" {
		c.t.Errorf("%s %v: %+v, want %s", tool, a, s, code)
	}
	return s
}
