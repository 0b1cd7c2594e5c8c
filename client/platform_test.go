package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/archive"
	"github.com/cove-sandbox/cove/internal/audit"
	"github.com/cove-sandbox/cove/internal/auth"
	"github.com/cove-sandbox/cove/internal/httpapi"
	"github.com/cove-sandbox/cove/internal/policy"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/internal/ticket"
	"github.com/cove-sandbox/cove/internal/volume"
	"github.com/cove-sandbox/cove/platformtest"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
	"github.com/cove-sandbox/cove/store/memory"
)

func TestMain(m *testing.M) {
	local.Main()
	goleak.VerifyTestMain(m)
}

// TestPlatform runs the suite of the platform against a client of a server on
// loopback, with a key for every caller.
func TestPlatform(t *testing.T) {
	platformtest.Run(t, func(t *testing.T, o platformtest.Options) platformtest.Harness {
		return newRemote(t, o)
	})
}

func newRemote(t *testing.T, o platformtest.Options) *remote {
	t.Helper()
	keeper := fake.NewKeeper()
	t.Cleanup(keeper.Close)
	dir := t.TempDir()
	return openRemote(t, o, platformtest.Fake(), func() (cove.Provider, error) {
		return fake.New(fake.Config{Dir: filepath.Join(dir, "fake"), Keeper: keeper})
	})
}

// TestPlatformOfRealSandboxes runs a part of it on sandboxes of this machine.
func TestPlatformOfRealSandboxes(t *testing.T) {
	tier.Full(t, "inprocess runs groups of the suite on sandboxes of this machine")
	platformtest.Run(t, func(t *testing.T, o platformtest.Options) platformtest.Harness {
		dir := providertest.Dir(t)
		return openRemote(t, o, platformtest.Extras{}, func() (cove.Provider, error) {
			p, err := local.New(local.Config{Dir: dir})
			if err == nil {
				providertest.Ready(t, p)
			}
			return p, err
		})
	}, "output", "tar", "terminal", "named_volumes")
}

func openRemote(t *testing.T, o platformtest.Options, extras platformtest.Extras, provider func() (cove.Provider, error)) *remote {
	t.Helper()
	watch := auth.NewWatch()
	r := &remote{t: t, dir: t.TempDir(), store: watch.Store(memory.New()), watch: watch, options: o, extras: extras, provider: provider}
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	return r
}

// remote is an engine behind a server, and clients of it.
type remote struct {
	t        *testing.T
	dir      string
	store    cove.Store
	watch    *auth.Watch
	options  platformtest.Options
	extras   platformtest.Extras
	provider func() (cove.Provider, error)

	server  *httptest.Server
	clients []*client.Client
	book    *ticket.Book
	shut    []func()
}

func (r *remote) open() error {
	if err := os.MkdirAll(filepath.Join(r.dir, "output"), 0o700); err != nil {
		return err
	}
	journal, err := audit.Open(audit.Config{Dir: filepath.Join(r.dir, "journal"), Node: "test"})
	if err != nil {
		return err
	}
	output, err := os.OpenRoot(filepath.Join(r.dir, "output"))
	if err != nil {
		return err
	}
	provider, err := r.provider()
	if err != nil {
		return err
	}
	archives, err := archive.Open(filepath.Join(r.dir, "archives"))
	if err != nil {
		return err
	}
	folders, err := volume.Open(filepath.Join(r.dir, "volumes"))
	if err != nil {
		return err
	}
	rules, err := policy.New(policy.Config{})
	if err != nil {
		return err
	}
	o := r.options
	e, err := engine.Open(r.t.Context(), engine.Config{
		Providers: []cove.Provider{provider}, Provider: provider.Name(), Policy: rules, Policies: rules.Profiles(), Store: r.store, Journal: journal,
		Archives: archives, Folders: folders, VolumeSize: o.VolumeSize, MaxVolumes: o.MaxVolumes, Output: output, Node: "test", Kernels: map[string]cove.Kernels{"": fake.Kernels{}}, Runners: map[string]cove.Runner{"": fake.Runner{}},
		Datasets: fake.Datasets{}, Responder: fake.Responder{},
		Analyzers:   map[string]cove.Analyzer{"": fake.Analyzer{}},
		MaxSessions: o.MaxSessions, MaxMemory: o.MaxMemory, Evict: o.Evict, QueueLength: o.QueueLength,
		Volumes: o.Volumes, Shared: o.Shared, Flavors: o.Flavors, OutputBudget: o.OutputBudget, OutputKept: o.OutputKept,
		ExecTimeout: o.ExecTimeout, MaxFileSize: o.MaxFileSize, Prices: o.Prices, Sign: r.sign,
	})
	if err != nil {
		return err
	}
	r.shut = []func(){
		func() { r.must(e.Close(context.WithoutCancel(r.t.Context()))) }, func() { r.must(provider.Close()) },
		func() { r.must(journal.Close()) }, func() { r.must(output.Close()) }, func() { r.must(folders.Close()) },
	}
	keys := auth.New(r.store)
	r.book = ticket.New(make([]byte, 32))
	desk := ticket.NewDesk(r.book, func(ctx context.Context, name string) (cove.Principal, func(), error) {
		return keys.ByID(ctx, cove.ID(name))
	})
	r.server = httptest.NewUnstartedServer(nil)
	r.server.Config = httpapi.Server(r.previews(e.As, desk, httpapi.New(httpapi.Config{
		Platform: e.As, Tickets: desk, Watch: r.watch.Follow,
		Authenticate: func(req *http.Request) (cove.Principal, func(), error) {
			return keys.Authenticate(req.Context(), auth.FromRequest(req))
		},
	})), nil)
	r.server.Start()
	return nil
}

func (r *remote) must(err error) {
	if err != nil {
		r.t.Error(err)
	}
}

// As makes a key with what p has and a client that shows it.
func (r *remote) As(p cove.Principal) cove.Platform {
	secret := cove.NewSecret()
	r.must(r.store.PutKey(r.t.Context(), &cove.Key{
		ID: cove.NewID(), Name: p.Name, Tenant: p.Tenant, Hash: cove.HashSecret(secret), Scopes: p.Scopes, Limits: p.Limits, Defaults: p.Defaults,
	}))
	var opts []client.Option
	if on := r.options.AutoRetry; on != nil {
		opts = append(opts, client.WithAutoRetry(*on))
	}
	c, err := client.New(r.server.URL, secret, opts...)
	r.must(err)
	r.clients = append(r.clients, c)
	return c
}

func (r *remote) Close() {
	for _, c := range r.clients {
		r.must(c.Close())
	}
	r.clients = nil
	r.server.CloseClientConnections()
	r.server.Close()
	for _, shut := range r.shut {
		shut()
	}
}

func (r *remote) Restart() error {
	r.Close()
	return r.open()
}
