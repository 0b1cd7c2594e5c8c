package cluster_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/archive"
	"github.com/cove-sandbox/cove/internal/audit"
	"github.com/cove-sandbox/cove/internal/cluster"
	"github.com/cove-sandbox/cove/internal/httpapi"
	"github.com/cove-sandbox/cove/internal/noderecord"
	"github.com/cove-sandbox/cove/internal/policy"
	"github.com/cove-sandbox/cove/internal/volume"
	"github.com/cove-sandbox/cove/platformtest"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/store/redis"
	"github.com/cove-sandbox/cove/store/redis/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "0123456789abcdef0123456789abcdef"

// lease is long enough for a machine that is slow; what waits for one has its own.
const lease = 10 * time.Second

// settled returns names of directories that have settled.
func settled(t testing.TB, url string, n int) (next func() string) {
	t.Helper()
	var wait time.Duration
	for i := range n {
		wait = redistest.Begin(t, url, fmt.Sprint("t", i), "first")
	}
	<-time.After(wait)
	i := 0
	return func() string {
		if i++; i > n {
			t.Fatalf("there are no more than %d directories", n)
		}
		return fmt.Sprint("t", i-1)
	}
}

// node is one server of a cluster, without its face.
type node struct {
	t      testing.TB
	name   string
	dir    string
	url    string
	prefix string
	lease  time.Duration
	secret string
	region string
	others []cluster.Region
	moving cove.Archives
	keeper *fake.Keeper
	o      platformtest.Options

	redis     *redistest.Server
	directory *redis.Store
	records   *noderecord.Directory // the same, with copies on the node's disk
	before    bool                  // the node was there before
	link      *link                 // between the node and the directory
	member    *cluster.Member
	engine    *engine.Engine
	address   string
	server    *http.Server
	shut      []func() error
	crashed   bool
	silent    atomic.Bool // calls of other nodes are read, and the connection ends without an answer
}

func newNode(t testing.TB, url, prefix, name string) *node {
	t.Helper()
	keeper := fake.NewKeeper()
	t.Cleanup(keeper.Close)
	return &node{t: t, name: name, dir: t.TempDir(), url: url, prefix: prefix, lease: lease, secret: secret, keeper: keeper}
}

// open starts the node.
func (n *node) open() error {
	ctx := context.WithoutCancel(n.t.Context())
	var err error
	n.directory, err = redis.Open(ctx, redis.Config{URL: n.url, Node: n.name, Instance: n.dir, Lease: n.lease, Prefix: n.prefix})
	if err != nil {
		return err
	}
	n.link = &link{Store: n.directory}
	n.records, err = noderecord.Open(noderecord.Config{
		Directory: n.link, Node: n.name, Dir: filepath.Join(n.dir, "node-records"), Before: n.before, Remembered: engine.KeepEnded,
	})
	if err != nil {
		return err
	}
	n.before = true
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	n.address = l.Addr().String()
	n.member, err = cluster.Join(ctx, cluster.Config{
		Directory: n.records, Announce: n.records.Announce, Renewed: n.records.Renew, Node: n.name, Region: n.region, Regions: n.others, Address: n.address, Version: "test",
		Secret: n.secret, Lease: n.lease, Grace: time.Minute,
	})
	if err != nil {
		return err
	}
	if err := n.openEngine(ctx); err != nil {
		return err
	}
	here := httpapi.New(httpapi.Config{Platform: n.member.Here, Authenticate: n.member.Authenticate})
	home := httpapi.New(httpapi.Config{Platform: n.member.Home, Authenticate: n.member.Authenticate})
	n.server = httpapi.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.silent.Load() {
			conn, _, err := http.NewResponseController(w).Hijack()
			n.must(err)
			n.must(conn.Close())
			return
		}
		if cluster.WantsAny(r) {
			home.ServeHTTP(w, r)
			return
		}
		here.ServeHTTP(w, r)
	}), nil)
	base, cut := context.WithCancel(ctx)
	n.server.BaseContext = func(net.Listener) context.Context { return base }
	go n.server.Serve(tls.NewListener(l, n.member.Door())) //nolint:errcheck // it ends with the node
	n.shut = append(n.shut, func() error { cut(); return n.server.Close() })
	return n.member.Serve(ctx, n.engine)
}

func (n *node) openEngine(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(n.dir, "output"), 0o700); err != nil {
		return err
	}
	journal, err := audit.Open(audit.Config{Dir: filepath.Join(n.dir, "journal"), Node: n.name})
	if err != nil {
		return err
	}
	output, err := os.OpenRoot(filepath.Join(n.dir, "output"))
	if err != nil {
		return err
	}
	provider, err := fake.New(fake.Config{Dir: filepath.Join(n.dir, "fake"), Keeper: n.keeper})
	if err != nil {
		return err
	}
	archives, err := archive.Open(filepath.Join(n.dir, "archives"))
	if err != nil {
		return err
	}
	folders, err := volume.Open(filepath.Join(n.dir, "volumes"))
	if err != nil {
		return err
	}
	rules, err := policy.New(policy.Config{})
	if err != nil {
		return err
	}
	o := n.o
	n.engine, err = engine.Open(ctx, engine.Config{
		Providers: []cove.Provider{provider}, Provider: provider.Name(), Policy: rules, Policies: rules.Profiles(),
		Store: n.records, Directory: n.records, Keeps: n.records.Keeps, Cluster: n.member, Journal: journal, Archives: archives, Moving: n.moving,
		Folders: folders, VolumeSize: o.VolumeSize, MaxVolumes: o.MaxVolumes, Output: output, Node: n.name,
		Kernels: map[string]cove.Kernels{"": fake.Kernels{}}, Runners: map[string]cove.Runner{"": fake.Runner{}},
		Datasets: fake.Datasets{}, Responder: fake.Responder{}, Analyzers: map[string]cove.Analyzer{"": fake.Analyzer{}},
		MaxSessions: o.MaxSessions, MaxMemory: o.MaxMemory, Evict: o.Evict, QueueLength: o.QueueLength,
		Volumes: o.Volumes, Shared: o.Shared, Flavors: o.Flavors, OutputBudget: o.OutputBudget, OutputKept: o.OutputKept,
		ExecTimeout: o.ExecTimeout, MaxFileSize: o.MaxFileSize, Prices: o.Prices,
		Same: func(request []byte) string { return fmt.Sprintf("%x", request) },
	})
	n.shut = []func() error{folders.Close, output.Close, journal.Close, provider.Close}
	return err
}

// link is the way to the directory, by which beats can be kept from coming through.
type link struct {
	*redis.Store

	cut    atomic.Bool
	before atomic.Pointer[func()] // called when a beat was begun, once
}

func (l *link) Beat(ctx context.Context, n cove.Node) (cove.Pulse, error) {
	if l.cut.Load() {
		return cove.Pulse{}, cove.Errorf(cove.Unavailable, "cut off").Reason(cove.ReasonNoDirectory)
	}
	if before := l.before.Swap(nil); before != nil {
		(*before)()
	}
	return l.Store.Beat(ctx, n)
}

// crash cuts the node off from all others and from the directory, for good.
func (n *node) crash() {
	n.must(n.shut[len(n.shut)-1]()) // the door
	n.member.Crash()
	n.must(n.records.Close())
	n.crashed = true
}

// close ends the node in order.
func (n *node) close() {
	if n.member == nil {
		return
	}
	ctx := context.WithoutCancel(n.t.Context())
	if n.crashed {
		_ = n.engine.Close(ctx) // it cannot write down that it ends
		for _, shut := range n.shut[:len(n.shut)-1] {
			n.must(shut())
		}
		n.member = nil
		return
	}
	n.must(n.shut[len(n.shut)-1]()) // the door
	n.must(n.engine.Close(ctx))
	n.member.Leave(ctx)
	for _, shut := range n.shut[:len(n.shut)-1] {
		n.must(shut())
	}
	n.must(n.records.Close())
	n.member = nil
}

func (n *node) must(err error) {
	if err != nil {
		n.t.Helper()
		n.t.Error(err)
	}
}

// start opens nodes and waits until each knows how all are.
func start(t testing.TB, nodes ...*node) {
	t.Helper()
	for _, n := range nodes {
		if err := n.open(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.close)
	}
	for _, n := range nodes {
		sees(t, n, len(nodes))
	}
}

// sees waits until a node knows of so many that are ready or cordoned.
func sees(t testing.TB, n *node, want int) {
	t.Helper()
	for range 600 {
		up := 0
		for _, other := range n.member.Known() {
			if other.State == cove.NodeReady || other.State == cove.NodeCordoned {
				up++
			}
		}
		if up == want {
			return
		}
		n.member.Look(t.Context())
		<-time.After(50 * time.Millisecond)
	}
	t.Fatalf("node %s does not see %d nodes", n.name, want)
}

func somebody() cove.Principal {
	return cove.Principal{Name: "ann", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeAll}}
}

func newRedis(t testing.TB) *redistest.Server {
	t.Helper()
	return redistest.Start(t)
}
