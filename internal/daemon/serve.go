//go:build !lean

package daemon

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/auth"
	"github.com/cove-sandbox/cove/internal/cluster"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/httpapi"
	"github.com/cove-sandbox/cove/internal/intake"
	"github.com/cove-sandbox/cove/internal/mcpserver"
	"github.com/cove-sandbox/cove/internal/noderecord"
	"github.com/cove-sandbox/cove/internal/recovery"
	"github.com/cove-sandbox/cove/internal/telemetry"
	"github.com/cove-sandbox/cove/internal/ticket"
	"github.com/cove-sandbox/cove/internal/wire"
)

// How long the parts of an end may take.
const (
	drainTime = 10 * time.Second // for requests to finish by themselves
	breakTime = 5 * time.Second  // for streams whose context was ended
	closeTime = 20 * time.Second // for the engine
	yieldTime = 15 * time.Second // for a predecessor that is ending
)

// Options is how a server is run.
type Options struct {
	Version string
	// OnDemand is a server that a command started: it listens on the socket
	// only, and ends when it has had nothing to do for COVE_DAEMON_IDLE.
	OnDemand bool
	// DevTLS has the hosts of COVE_E2B_DOMAIN answered over HTTPS with certificates of
	// this server's own making, which clients trust that are told to.
	DevTLS bool
	Logger *slog.Logger
	// Ready is called once, when requests are served. nil: nobody wants to know.
	Ready func(Ready)
	Parts Parts
}

// Ready says where a server is.
type Ready struct {
	Home       string `json:"home"`
	URL        string `json:"url"`
	Socket     string `json:"socket"`
	KeyFile    string `json:"key_file"`
	KeyCreated bool   `json:"key_created"` // by this very start
	LoginURL   string `json:"login_url"`   // signs a browser in as that key, once
	PID        int    `json:"pid"`
	// E2BDomain is what E2B's SDKs are given as E2B_DOMAIN, and E2BCA the file with the
	// certificate that vouches for it, where this server made that.
	E2BDomain string `json:"e2b_domain,omitempty"`
	E2BCA     string `json:"e2b_ca,omitempty"`
	MSBURL    string `json:"msb_url,omitempty"` // the address of microsandbox's clients
}

// Serve runs the server of a COVE_HOME until ctx ends, and then lets requests
// under way finish. One process at a time may: a second one is Conflict, with
// the pid and the address of the first. The socket acts for the operating-system
// user at its other end, the address for the key that a request shows.
func Serve(ctx context.Context, cfg config.Config, o Options) (err error) {
	home, err := OpenHome(cfg.Home)
	if err != nil {
		return err
	}
	wait := time.Duration(0)
	if o.OnDemand {
		wait = yieldTime
	}
	l, err := home.takeHome(ctx, wait)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.free()) }()
	if o.OnDemand {
		// A server that stays must not keep the directory of whoever started it
		// from being unmounted.
		if err := os.Chdir("/"); err != nil {
			return homeError(home.dir, err)
		}
	}
	for {
		err := serveOnce(ctx, cfg, o, home, l)
		switch {
		case errors.Is(err, errDecided):
			continue
		case errors.Is(err, errUndecided):
			return nil
		}
		return err
	}
}

// serveOnce is Serve with the lock held, until the end or until an operator has
// decided what becomes of what was found at the start.
func serveOnce(ctx context.Context, cfg config.Config, o Options, home Home, l *lock) (err error) {
	s := &server{home: home, lock: l, cfg: cfg, Options: o, traffic: newTraffic(), watch: auth.NewWatch(), listing: make(chan struct{}, 1), bodies: intake.New()}
	if err := s.listen(ctx); err != nil {
		return err
	}
	defer s.closeListeners()
	if err := s.openLinks(); err != nil {
		return err
	}
	if s.telemetry, err = newTelemetry(cfg, o); err != nil {
		return err
	}
	defer s.endTelemetry(ctx)
	s.parts, err = assemble(ctx, cfg, site{
		dir: home.dir, node: cfg.NodeID, version: o.Version, spares: cfg.Pool.Size, logger: o.Logger, observer: s.telemetry, sign: s.sign, parts: o.Parts,
		store: s.openStore, join: s.asNode, look: s.look,
	})
	if err != nil {
		return err
	}
	s.serving.Store(s.parts.engine)
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	s.keys = s.keyring()
	if err := s.joinLinks(); err != nil {
		return err
	}
	return s.run(ctx)
}

// server is one run of Serve.
type server struct {
	Options

	home    Home
	lock    *lock // of the home
	cfg     config.Config
	parts   *assembly
	copies  *recovery.Copies // nil in a cluster
	traffic *traffic
	watch   *auth.Watch
	bodies  *intake.Budget // of all doors

	telemetry *telemetry.Telemetry

	tcp    net.Listener // nil on demand
	socket net.Listener

	keys      *auth.Keyring
	book      *ticket.Book
	desk      *ticket.Desk
	origins   origins
	previews  net.Listener  // nil unless they have a door of their own
	e2bDoor   net.Listener  // likewise for E2B's domain
	msbDoor   net.Listener  // and for microsandbox's clients
	domain    string        // of E2B's clients, with its port; "" for none
	listing   chan struct{} // holds one element while keys are listed for a link; see tokenCallers
	authority *authority    // that vouches for the domain; nil unless it is ours

	mcp *mcpserver.Handler // serves clients that have sessions of their own

	nodeDoor   net.Listener // for other nodes; nil where there are none, as the next three
	directory  cove.Directory
	records    *noderecord.Directory // the same, with what this node keeps of it
	member     *cluster.Member
	remembered *auth.Remembered
	revokedMu  sync.Mutex
	revoked    []*cove.Key                   // guarded by revokedMu; the newest
	serving    atomic.Pointer[engine.Engine] // nil until it is open
}

// listen opens the doors before anything else is begun, so that an address
// that is taken leaves nothing behind.
func (s *server) listen(ctx context.Context) (err error) {
	if !s.OnDemand {
		if s.tcp, err = listenTCP(ctx, "COVE_ADDR", s.cfg.Server.Addr); err != nil {
			return err
		}
	}
	for _, open := range []func(context.Context) error{s.listenE2B, s.guard, s.listenPreviews, s.listenMSB, s.listenNodes} {
		if err = open(ctx); err != nil {
			s.closeListeners()
			return err
		}
	}
	if s.socket, err = listenSocket(s.home.Socket()); err != nil {
		s.closeListeners()
		return homeError(s.home.dir, err)
	}
	return nil
}

// listenTCP listens on the address of a setting.
func listenTCP(ctx context.Context, setting, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, cove.InvalidField(setting, "%s is in use by another program; stop that, or set another address, such as 127.0.0.1:0", addr)
	}
	if err != nil {
		return nil, cove.InvalidField(setting, "%s cannot be listened on (%s); set an address of this machine", addr, lastOp(err))
	}
	return l, nil
}

// lastOp is the reason in a network error: the address stands in the sentence.
func lastOp(err error) error {
	if oe, ok := errors.AsType[*net.OpError](err); ok {
		return oe.Err
	}
	return err
}

func (s *server) closeListeners() {
	for _, l := range []net.Listener{s.tcp, s.socket, s.previews, s.e2bDoor, s.msbDoor, s.nodeDoor} {
		if l != nil {
			_ = l.Close() // the server may have closed it
		}
	}
}

func (s *server) address() string {
	if s.tcp == nil {
		return s.home.socketURL()
	}
	if s.cfg.Server.TLSCert != "" {
		return "https://" + s.tcp.Addr().String()
	}
	return "http://" + s.tcp.Addr().String()
}

// say writes down which process serves COVE_HOME, and where.
func (s *server) say() error {
	err := s.lock.say(Holder{PID: os.Getpid(), Address: s.address(), Version: s.Version, OnDemand: s.OnDemand, Started: time.Now().UTC()})
	if err != nil {
		return homeError(s.home.dir, err)
	}
	return nil
}

func (s *server) run(ctx context.Context) error {
	created, err := auth.Bootstrap(ctx, s.parts.store, s.home.AdminKey())
	if err != nil {
		return err
	}
	if err := s.say(); err != nil {
		return err
	}
	base, end := context.WithCancelCause(context.WithoutCancel(ctx))
	cut := func() { end(ending()) }
	defer cut()
	ended := make(chan error, mostDoors)
	explain, err := explainer(s.cfg)
	if err != nil {
		return err
	}
	pages, err := consoleOf(s.cfg)
	if err != nil {
		return err
	}
	servers := s.start(base, ended, httpapi.Config{
		Paths: hostPaths(s.cfg), Health: s.health, Explain: explain, Verify: verifier(s.cfg), Console: pages, Journal: journalCheck(s.home),
		ToolImports: s.cfg.ToolImports(), Logger: s.Logger, Version: s.Version,
	})
	if s.member != nil {
		if err := s.member.Serve(ctx, s.parts.engine); err != nil {
			return err
		}
	}
	s.Logger.InfoContext(ctx, "serving", slog.String("address", s.address()), slog.String("home", s.home.dir), slog.String("version", s.Version))
	if s.Ready != nil {
		s.Ready(Ready{
			Home: s.home.dir, URL: s.address(), Socket: s.home.Socket(), KeyFile: s.home.AdminKey(), KeyCreated: created, PID: os.Getpid(),
			LoginURL: s.loginURL(ctx), E2BDomain: s.domain, E2BCA: s.authority.file(), MSBURL: s.msbURL(),
		})
	}
	err = s.await(ctx, ended)
	s.Logger.InfoContext(ctx, "draining")
	return errors.Join(err, s.endMCP(ctx), drain(base, cut, servers))
}

// start serves every listener in the background, each with its own way to know
// who asks.
func (s *server) start(base context.Context, ended chan<- error, common httpapi.Config) []*http.Server {
	s.telemetry.Serve(s.source())
	byKey := func(r *http.Request) (cove.Principal, func(), error) {
		return s.keys.Authenticate(r.Context(), auth.FromRequest(r))
	}
	byPeer := func(r *http.Request) (cove.Principal, func(), error) {
		if auth.FromRequest(r) != "" {
			return byKey(r)
		}
		return userOf(r), func() {}, nil
	}
	var servers []*http.Server
	handlers := s.faces()
	doors := []door{{s.tcp, byKey}, {s.socket, byPeer}, {s.previews, nil}, {s.e2bDoor, byKey}, {s.msbDoor, byKey}}
	if s.member != nil {
		doors = append(doors, door{s.nodesOnly(), s.member.Authenticate})
	}
	for _, d := range doors {
		if d.listener == nil {
			continue
		}
		srv := httpapi.Server(s.traffic.watch(s.handler(d, common, handlers)), s.Logger) //nolint:contextcheck // requests have contexts of their own
		srv.BaseContext = func(net.Listener) context.Context { return base }
		srv.ConnContext = withPeer
		if s.domain != "" {
			srv.Protocols.SetHTTP2(true) // for those whom TLS lets speak it
		}
		servers = append(servers, srv)
		go func() { ended <- srv.Serve(d.listener) }()
	}
	return servers
}

// mostDoors is how many listeners there can be.
const mostDoors = 6

// health is unavailable with the cause where nothing new can be begun: without a
// journal, on a full disk or without file descriptors, that is everything.
func (s *server) health(ctx context.Context) wire.Health {
	h := wire.Health{Status: wire.Healthy}
	_, err := s.parts.engine.As(owner()).Admin().Stats(ctx)
	if s.member != nil {
		h.NodeID, h.RedisConnected = s.cfg.NodeID, s.member.Connected()
		err = cmp.Or(err, s.member.Serving())
	}
	if err = cmp.Or(s.parts.journal.Err(), s.parts.journal.Room(), descriptorsFor(0), err); err != nil {
		h.Status, h.Message = "unavailable", cove.MessageOf(hostPaths(s.cfg).Error(err))
	}
	return h
}

// await returns when the server shall end, with an error if it had to.
func (s *server) await(ctx context.Context, ended <-chan error) error {
	idle, broken := make(chan struct{}), make(chan error, 1)
	if s.OnDemand {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			if s.traffic.awaitIdle(ctx, s.cfg.Server.DaemonIdle, s.alive) {
				close(idle)
			}
		}()
		go s.watchJournal(ctx, broken)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-idle:
		return nil
	case err := <-broken:
		return err
	case err := <-ended:
		return cove.Wrap(cove.Internal, err, "the server stopped listening")
	}
}

// journalEvery is how often a server on demand asks its journal how it is.
const journalEvery = time.Second

// watchJournal tells when the journal takes no more lines. A server that nobody
// watches ends then, and the next command starts one that says what is wrong,
// or finds that all is well again.
func (s *server) watchJournal(ctx context.Context, broken chan<- error) {
	for pause(ctx, journalEvery) == nil {
		if err := s.parts.journal.Err(); err != nil {
			s.Logger.ErrorContext(ctx, "the journal is broken", slog.Any("error", err))
			broken <- err
			return
		}
	}
}

// alive reports whether any session has a sandbox.
func (s *server) alive(ctx context.Context) bool {
	stats, err := s.parts.engine.As(owner()).Admin().Stats(ctx)
	return err != nil || stats.ActiveSessions > 0
}

// drain stops taking requests, lets those under way finish, and then ends the
// streams that do not finish by themselves.
func drain(base context.Context, cut context.CancelFunc, servers []*http.Server) error {
	patient, cancel := context.WithTimeout(base, drainTime)
	defer cancel()
	stop := context.AfterFunc(patient, cut)
	defer stop()
	final, cancelFinal := context.WithTimeout(context.WithoutCancel(base), drainTime+breakTime)
	defer cancelFinal()
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i, srv := range servers {
		all.Go(func() { errs[i] = shut(final, srv) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// shut ends a server when its requests are over, or when ctx is. A client that
// makes it wait until then is broken off, and has done no harm to the server.
func shut(ctx context.Context, srv *http.Server) error {
	err := srv.Shutdown(ctx)
	if err != nil && ctx.Err() != nil {
		return srv.Close()
	}
	return err
}

// ending is the answer to a request that is broken off when the server stops.
func ending() error {
	return cove.Errorf(cove.Unavailable, "the server is shutting down").
		Remedy("look whether it was done before you ask again when the server is back; programs in the background go on")
}

func (s *server) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return s.parts.end(ctx)
}
