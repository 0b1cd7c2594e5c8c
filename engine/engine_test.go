package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/archive"
	"github.com/cove-sandbox/cove/internal/audit"
	"github.com/cove-sandbox/cove/internal/policy"
	"github.com/cove-sandbox/cove/internal/volume"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/store/memory"
)

func TestMain(m *testing.M) {
	switch dir := os.Getenv(crashDir); {
	case dir != "" && os.Getenv(killedOp) != "":
		killedChild(dir)
	case dir != "":
		crashChild(dir)
	}
	goleak.VerifyTestMain(m)
}

// world is what outlives an engine: tests open one engine after the other on
// it, as a server that is started again does.
type world struct {
	t        *testing.T
	dir      string
	store    cove.Store
	journal  cove.Journal
	fake     fake.Config
	provider *fake.Provider
	output   *os.Root
}

// newWorld makes an empty world. change may set how the provider behaves.
func newWorld(t *testing.T, change ...func(*fake.Config)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), store: memory.New()}
	for _, name := range []string{"fake", "output"} {
		if err := os.Mkdir(filepath.Join(w.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.fake = fake.Config{Dir: filepath.Join(w.dir, "fake"), Keeper: fake.NewKeeper()}
	t.Cleanup(w.fake.Keeper.Close)
	for _, c := range change {
		c(&w.fake)
	}
	j, err := audit.Open(audit.Config{Dir: filepath.Join(w.dir, "journal"), Node: "test"})
	if err != nil {
		t.Fatal(err)
	}
	w.journal = j
	if w.output, err = os.OpenRoot(filepath.Join(w.dir, "output")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.journal.Close(); err != nil {
			t.Error(err)
		}
		_ = w.output.Close()
		_ = w.store.Close()
	})
	return w
}

// open starts an engine on the world. It is closed at the end of the test.
func (w *world) open(change ...func(*engine.Config)) *engine.Engine {
	w.t.Helper()
	e, err := w.tryOpen(change...)
	if err != nil {
		w.t.Fatal(err)
	}
	provider := w.provider
	w.t.Cleanup(func() { w.shut(e, provider) })
	return e
}

func (w *world) shut(e *engine.Engine, p *fake.Provider) {
	if err := e.Close(context.Background()); err != nil {
		w.t.Error(err)
	}
	if err := p.Close(); err != nil {
		w.t.Error(err)
	}
}

func (w *world) tryOpen(change ...func(*engine.Config)) (*engine.Engine, error) {
	w.t.Helper()
	provider, err := fake.New(w.fake)
	if err != nil {
		w.t.Fatal(err)
	}
	w.provider = provider
	archives, err := archive.Open(filepath.Join(w.dir, "archives"))
	if err != nil {
		w.t.Fatal(err)
	}
	folders, err := volume.Open(filepath.Join(w.dir, "volumes"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = folders.Close() })
	rules, err := policy.New(policy.Config{})
	if err != nil {
		w.t.Fatal(err)
	}
	cfg := engine.Config{
		Providers: []cove.Provider{w.provider}, Provider: w.provider.Name(),
		Policy: rules, Policies: rules.Profiles(), Store: w.store, Journal: w.journal,
		Archives: archives, Folders: folders, Output: w.output, Node: "test", Kernels: map[string]cove.Kernels{"": fake.Kernels{}}, Runners: map[string]cove.Runner{"": fake.Runner{}},
		Datasets: fake.Datasets{}, Responder: fake.Responder{},
		Analyzers: map[string]cove.Analyzer{"": fake.Analyzer{}},
	}
	for _, c := range change {
		c(&cfg)
	}
	e, err := engine.Open(w.t.Context(), cfg)
	if err != nil {
		_ = w.provider.Close()
	}
	return e, err
}

// openEngine is an engine on a world of its own.
func openEngine(t *testing.T, change ...func(*engine.Config)) *engine.Engine {
	t.Helper()
	return newWorld(t).open(change...)
}

// boss may do everything in the default tenant.
var boss = cove.Principal{Name: "boss", Scopes: []cove.Scope{cove.ScopeAll}}

func mustOpen(t *testing.T, p cove.Platform, spec cove.Spec) *cove.Session {
	t.Helper()
	s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sh runs a line and returns what it wrote.
func sh(t *testing.T, p cove.Platform, id cove.ID, line string) string {
	t.Helper()
	x, err := p.Processes(id).Exec(t.Context(), cove.ExecRequest{Line: line})
	if err != nil {
		t.Fatal(err)
	}
	return string(x.Stdout.Data)
}

func wantCode(t *testing.T, err error, code cove.Code, reason string) {
	t.Helper()
	if cove.CodeOf(err) != code || reason != "" && cove.ReasonOf(err) != reason {
		t.Errorf("the error is %v with reason %q, want %s %s", err, cove.ReasonOf(err), code, reason)
	}
}
