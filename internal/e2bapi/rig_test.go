package e2bapi_test

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/archive"
	"github.com/cove-sandbox/cove/internal/audit"
	"github.com/cove-sandbox/cove/internal/e2bapi"
	"github.com/cove-sandbox/cove/internal/policy"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The keys of the rig. otherKey is of another tenant; the others are of one tenant and
// differ in their scopes.
const (
	goodKey  = "e2b_0123456789abcdef0123456789abcdef01234567"
	otherKey = "e2b_fedcba9876543210fedcba9876543210fedcba98"
	readKey  = "e2b_00000000000000000000000000000000000000aa"
	filesKey = "e2b_00000000000000000000000000000000000000bb"
	lifeKey  = "e2b_00000000000000000000000000000000000000cc"
)

// principals are the callers that the keys belong to.
var principals = map[string]cove.Principal{
	goodKey:  {Name: "tester", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeRead, cove.ScopeWrite, cove.ScopeExec, cove.ScopeFileRead, cove.ScopeFileWrite, cove.ScopeTemplates}},
	otherKey: {Name: "stranger", Tenant: "other", Scopes: []cove.Scope{cove.ScopeAll}},
	readKey:  {Name: "reader", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeRead}},
	lifeKey:  {Name: "manager", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeRead, cove.ScopeWrite}},
	filesKey: {Name: "filer", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeRead, cove.ScopeFileRead}},
}

// rig is the face in front of an engine on the fake provider.
type rig struct {
	t       *testing.T
	secret  []byte
	revoked map[string]bool // names of callers whose keys were revoked
	engine  *engine.Engine
	journal *audit.Journal
	store   cove.Store
	face    *e2bapi.Handler
	server  *httptest.Server
}

// rigOptions say what is different about a rig.
type rigOptions struct {
	face   func(*e2bapi.Config)
	engine func(*engine.Config)
	fake   func(*fake.Config)
	http2  bool // over TLS
}

// serve starts a face on a plain port.
func serve(t *testing.T, change ...func(*e2bapi.Config)) *rig {
	t.Helper()
	return serveWith(t, rigOptions{face: func(c *e2bapi.Config) {
		for _, set := range change {
			set(c)
		}
	}})
}

func serveWith(t *testing.T, o rigOptions) *rig {
	t.Helper()
	r := &rig{t: t, secret: []byte("a secret of thirty-two bytes, or so"), revoked: map[string]bool{}, store: memory.New()}
	r.openEngine(o)
	cfg := e2bapi.Config{
		Platform: func(p cove.Principal) cove.Platform { return r.engine.As(p) },
		Secret:   r.secret,
		Authenticate: func(_ context.Context, key string) (cove.Principal, func(), error) {
			if p, ok := principals[key]; ok {
				return p, nil, nil
			}
			return cove.Principal{}, nil, cove.Errorf(cove.Unauthenticated, "no valid key was shown")
		},
		Owner: func(ctx context.Context, id cove.ID) (cove.Principal, func(), error) {
			s, err := r.store.GetSession(ctx, id)
			if err != nil {
				return cove.Principal{}, nil, err
			}
			return r.key(ctx, s.Owner)
		},
		Key: r.key, Holders: r.holders, Authorize: r.engine.Authorize,
	}
	if o.face != nil {
		o.face(&cfg)
	}
	r.face = e2bapi.New(cfg)
	r.server = httptest.NewUnstartedServer(r.face)
	if o.http2 {
		r.server.EnableHTTP2 = true
		r.server.StartTLS()
	} else {
		r.server.Start()
	}
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
	})
	return r
}

// key returns the caller of a name, unless its key was revoked.
func (r *rig) key(_ context.Context, name string) (cove.Principal, func(), error) {
	for _, p := range principals {
		if p.Name == name && !r.revoked[name] {
			return p, nil, nil
		}
	}
	return cove.Principal{}, nil, cove.Errorf(cove.Unauthenticated, "the key %s is no longer good", name)
}

// holders yields each session, or the one of an id, with each caller of its tenant.
func (r *rig) holders(ctx context.Context, id cove.ID) iter.Seq2[cove.ID, string] {
	return func(yield func(cove.ID, string) bool) {
		for s, err := range r.store.Sessions(ctx, cove.SessionFilter{}) {
			if err != nil || id != "" && s.ID != id {
				continue
			}
			for _, p := range principals {
				if p.Tenant == s.Tenant && !yield(s.ID, p.Name) {
					return
				}
			}
		}
	}
}

// openEngine makes the parts behind the face.
func (r *rig) openEngine(o rigOptions) {
	r.t.Helper()
	dir := r.t.TempDir()
	for _, name := range []string{"fake", "output"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			r.t.Fatal(err)
		}
	}
	fakes := fake.Config{Dir: filepath.Join(dir, "fake")}
	if o.fake != nil {
		o.fake(&fakes)
	}
	provider := must(fake.New(fakes))(r.t)
	r.journal = must(audit.Open(audit.Config{Dir: filepath.Join(dir, "journal"), Node: "test"}))(r.t)
	output := must(os.OpenRoot(filepath.Join(dir, "output")))(r.t)
	archives := must(archive.Open(filepath.Join(dir, "archives")))(r.t)
	rules := must(policy.New(policy.Config{}))(r.t)
	cfg := engine.Config{
		Providers: []cove.Provider{provider}, Provider: provider.Name(),
		Policy: rules, Policies: rules.Profiles(), Store: r.store, Journal: r.journal,
		Archives: archives, Output: output, Node: "test", Kernels: map[string]cove.Kernels{"": fake.Kernels{}},
	}
	if o.engine != nil {
		o.engine(&cfg)
	}
	r.engine = must(engine.Open(r.t.Context(), cfg))(r.t)
	r.t.Cleanup(func() {
		for _, end := range []func() error{
			func() error { return r.engine.Close(context.Background()) },
			provider.Close, r.journal.Close, output.Close, r.store.Close,
		} {
			if err := end(); err != nil {
				r.t.Error(err)
			}
		}
	})
}

// must is for what cannot fail here.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// platform is the engine for the rig's own caller.
func (r *rig) platform() cove.Platform { return r.engine.As(principals[goodKey]) }

// open opens a session of the rig's own caller.
func (r *rig) open(spec cove.Spec) cove.ID {
	r.t.Helper()
	return must(r.platform().Sessions().Open(r.t.Context(), cove.OpenRequest{Spec: spec}))(r.t).ID
}

// token is the access token that the rig's own caller is given for a sandbox.
func (r *rig) token(id cove.ID) string { return r.tokenOf("access", id, "tester") }

// tokenOf is a token of a kind that a caller is given for a sandbox.
func (r *rig) tokenOf(kind string, id cove.ID, caller string) string {
	return e2bapi.Token(r.secret, kind, id, caller)
}

// inside makes a request to a port of a sandbox, as clients do on a plain port. An
// empty value takes a header away.
func (r *rig) inside(ctx context.Context, id cove.ID, port int, method, path string, body io.Reader, header ...string) *http.Request {
	r.t.Helper()
	req := must(http.NewRequestWithContext(ctx, method, r.server.URL+path, body))(r.t)
	all := append([]string{"E2b-Sandbox-Id", string(id), "E2b-Sandbox-Port", strconv.Itoa(port), "X-Access-Token", r.token(id)}, header...)
	for i := 0; i+1 < len(all); i += 2 {
		if all[i+1] == "" {
			req.Header.Del(all[i])
			continue
		}
		req.Header.Set(all[i], all[i+1])
	}
	return req
}

// do sends a request.
func (r *rig) do(req *http.Request) *http.Response {
	r.t.Helper()
	return must(r.server.Client().Do(req))(r.t)
}

// read sends a request and reads the answer.
func (r *rig) read(req *http.Request) (status int, body string, header http.Header) {
	r.t.Helper()
	resp := r.do(req)
	defer resp.Body.Close()
	return resp.StatusCode, string(must(io.ReadAll(resp.Body))(r.t)), resp.Header
}
