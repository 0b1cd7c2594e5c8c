//go:build linux

package microsandbox_test

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/archive"
	"github.com/cove-sandbox/cove/internal/audit"
	"github.com/cove-sandbox/cove/internal/msbapi"
	"github.com/cove-sandbox/cove/internal/policy"
	"github.com/cove-sandbox/cove/provider/microsandbox"
	"github.com/cove-sandbox/cove/provider/providertest"
	"github.com/cove-sandbox/cove/store/memory"
)

// hosted has an engine make machines, in which programs are root.
type hosted struct{ *rooted }

// Probe implements [cove.Provider].
func (hosted) Probe(context.Context) (cove.Capabilities, error) {
	return cove.Capabilities{
		Ready: true, Isolation: hostedIsolation, Workspaces: map[cove.WorkspaceKind]cove.Quota{cove.WorkspaceMemory: {}},
		Networks: []cove.NetworkMode{cove.NetworkNone}, Templates: []string{"base"},
	}, nil
}

var hostedIsolation = cove.Isolation{
	Boundary: cove.BoundaryNone, Network: cove.Absent, Memory: cove.Hard, CPU: cove.Hard, PIDs: cove.Absent, Disk: cove.Absent, Files: cove.Absent,
}

// Create implements [cove.Provider].
func (h hosted) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	box, err := h.rooted.Create(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	return hostedBox{box}, nil
}

// hostedBox is a machine with what an engine asks of one beside programs.
type hostedBox struct{ cove.Sandbox }

func (hostedBox) Isolation() cove.Isolation { return hostedIsolation }

func (hostedBox) Usage(context.Context) (cove.Usage, error) {
	return cove.Usage{Memory: 64 * cove.MiB}, nil
}

func (b hostedBox) Start(ctx context.Context, c cove.Command) (cove.Process, error) {
	p, err := b.Sandbox.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	return hostedProgram{p}, nil
}

type hostedProgram struct{ cove.Process }

func (p hostedProgram) Wait(ctx context.Context) (cove.Result, error) {
	r, err := p.Process.Wait(ctx)
	r.Outcome = cove.Exited
	return r, err
}

// faceKey is good at the faces of tests.
const faceKey = "msb_test"

var (
	facesMu sync.Mutex
	faces   = map[*testing.T]string{}
)

// face is the address of a server of ours for microsandbox's clients, in front of an
// engine whose machines have root. It is the same whenever the test asks.
func face(t *testing.T) string {
	t.Helper()
	facesMu.Lock()
	defer facesMu.Unlock()
	if url := faces[t]; url != "" {
		return url
	}
	e := faceEngine(t, hosted{newRooted(t)})
	who := cove.Principal{Name: "tests", Tenant: "tests", Scopes: []cove.Scope{cove.ScopeAll}, Limits: cove.KeyLimit{Namespace: "tests"}}
	httpd := httptest.NewServer(msbapi.New(msbapi.Config{
		Platform: func(p cove.Principal) cove.Platform { return e.As(p) },
		Authenticate: func(_ context.Context, secret string) (cove.Principal, func(), error) {
			if secret != faceKey {
				return cove.Principal{}, nil, cove.Errorf(cove.Unauthenticated, "no valid key was shown")
			}
			return who, nil, nil
		},
	}))
	faces[t] = httpd.URL
	t.Cleanup(func() {
		facesMu.Lock()
		delete(faces, t)
		facesMu.Unlock()
		httpd.CloseClientConnections()
		httpd.Close()
		for s, err := range e.As(who).Sessions().List(context.Background(), cove.SessionFilter{}) {
			t.Errorf("a machine is left: %v, %v", s, err)
		}
	})
	return httpd.URL
}

// faceEngine returns an engine over a provider that ends with the test.
func faceEngine(t *testing.T, p cove.Provider) *engine.Engine {
	t.Helper()
	dir := t.TempDir()
	fatal := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fatal(os.Mkdir(filepath.Join(dir, "output"), 0o700))
	journal, err := audit.Open(audit.Config{Dir: filepath.Join(dir, "journal"), Node: "test"})
	fatal(err)
	archives, err := archive.Open(filepath.Join(dir, "archives"))
	fatal(err)
	output, err := os.OpenRoot(filepath.Join(dir, "output"))
	fatal(err)
	rules, err := policy.New(policy.Config{})
	fatal(err)
	e, err := engine.Open(t.Context(), engine.Config{
		Providers: []cove.Provider{p}, Provider: p.Name(), Policy: rules, Policies: rules.Profiles(),
		Store: memory.New(), Journal: journal, Archives: archives, Output: output, Node: "test",
		Defaults: cove.Spec{Workspace: cove.Workspace{Kind: cove.WorkspaceMemory}, Network: cove.Network{Mode: cove.NetworkNone}},
	})
	fatal(err)
	t.Cleanup(func() {
		for _, err := range []error{e.Close(context.Background()), journal.Close(), output.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return e
}

// TestConformanceFace runs the suite with the server that Cove has for microsandbox's
// clients: what a client of theirs can build on it is whole.
func TestConformanceFace(t *testing.T) {
	providertest.Run(t, func(t *testing.T) cove.Provider {
		if strings.HasSuffix(t.Name(), "/escape/battery") {
			t.Skip("the machines are those of TestConformance, which are attacked there")
		}
		p := opened(t, microsandbox.Config{
			Dir: providertest.Dir(t), Transport: "rpc", ServerURL: face(t), APIKey: faceKey, Namespace: "tests", Agent: agent(t), Memory: 256 * cove.MiB,
		})
		providertest.Ready(t, p)
		return p
	})
}
