package e2bapi_test

import (
	"context"
	"io"
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

// What the rig knows callers by. The other key is another tenant's.
const (
	goodKey  = "e2b_0123456789abcdef0123456789abcdef01234567"
	otherKey = "e2b_fedcba9876543210fedcba9876543210fedcba98"
)

// principals are whom keys stand for.
var principals = map[string]cove.Principal{
	goodKey:  {Name: "tester", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeAll}},
	otherKey: {Name: "stranger", Tenant: "other", Scopes: []cove.Scope{cove.ScopeAll}},
}

// rig is the face in front of an engine on the fake provider.
type rig struct {
	t      *testing.T
	secret []byte
	engine *engine.Engine
	store  cove.Store
	face   *e2bapi.Handler
	server *httptest.Server
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
	r := &rig{t: t, secret: []byte("a secret of thirty-two bytes, or so"), store: memory.New()}
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
			for _, p := range principals {
				if p.Name == s.Owner {
					return p, nil, nil
				}
			}
			return cove.Principal{}, nil, cove.Errorf(cove.Unauthenticated, "the key of the session's owner is no longer good")
		},
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
	journal := must(audit.Open(audit.Config{Dir: filepath.Join(dir, "journal"), Node: "test"}))(r.t)
	output := must(os.OpenRoot(filepath.Join(dir, "output")))(r.t)
	archives := must(archive.Open(filepath.Join(dir, "archives")))(r.t)
	rules := must(policy.New(policy.Config{}))(r.t)
	cfg := engine.Config{
		Providers: []cove.Provider{provider}, Provider: provider.Name(),
		Policy: rules, Policies: rules.Profiles(), Store: r.store, Journal: journal,
		Archives: archives, Output: output, Node: "test", Kernels: map[string]cove.Kernels{"": fake.Kernels{}},
	}
	if o.engine != nil {
		o.engine(&cfg)
	}
	r.engine = must(engine.Open(r.t.Context(), cfg))(r.t)
	r.t.Cleanup(func() {
		for _, end := range []func() error{
			func() error { return r.engine.Close(context.Background()) },
			provider.Close, journal.Close, output.Close, r.store.Close,
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

// token is a sandbox's access token.
func (r *rig) token(id cove.ID) string { return e2bapi.Token(r.secret, "access", string(id)) }

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
