//go:build !lean

package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/httpapi"
	"github.com/cove-sandbox/cove/internal/recovery"
	"github.com/cove-sandbox/cove/internal/wire"
	"github.com/cove-sandbox/cove/store/sqlite"
)

// How a server ends that was in recovery: its operator decided, and it starts anew; or
// it was stopped before.
var (
	errDecided   = errors.New("the operator decided what becomes of what was found")
	errUndecided = errors.New("the server was stopped in recovery")
)

// openRecords opens the database of a COVE_HOME, with the copies of what is in it.
func (h Home) openRecords(ctx context.Context, logger *slog.Logger) (*recovery.Copies, error) {
	if err := sqlite.SetAside(h.database()); err != nil {
		return nil, err
	}
	return recovery.Open(ctx, h.records(), func() (bool, error) { return sqlite.Empty(h.database()) },
		func(ctx context.Context) (cove.Store, error) { return sqlite.Open(ctx, h.database()) }, orSilent(logger))
}

// orSilent returns the logger, or one that writes nothing where there is none.
func orSilent(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return logger
}

// recoverySite is what is compared with the database.
func recoverySite(copies *recovery.Copies, a *assembly, ec *engine.Config, logger *slog.Logger) *recovery.Site {
	return &recovery.Site{
		Copies: copies, Archives: ec.Archives, Folders: ec.Folders, Providers: ec.Providers, Chosen: append([]string{ec.Provider}, ec.Fallback...), Journal: a.journal,
		Spec: ec.SpecFor, Keep: ec.KeepPaused, Logger: orSilent(logger),
	}
}

// inRecovery is the answer to all requests of a server whose database does not know
// what is there.
func inRecovery(items []recovery.Item) error {
	return cove.Errorf(cove.Unavailable, "the server's database was lost or replaced: of sessions, snapshots and volumes it does not know %d, or knows them in an older version only", len(items)).
		Reason(cove.ReasonRecovery).
		Remedy("put back the right database while the server is stopped, or run cove recover on the server's machine, which lists what was found and takes it up or discards it")
}

// look compares the database with what is there. Where it finds what the database does
// not know, it serves only requests about that, until the operator has decided.
func (s *server) look(ctx context.Context, a *assembly, ec *engine.Config) error {
	if s.clustered() {
		return nil
	}
	site := recoverySite(s.copies, a, ec, s.Logger)
	items, err := site.Look(ctx)
	if err != nil || len(items) == 0 {
		return err
	}
	why := inRecovery(items)
	s.Logger.ErrorContext(ctx, "in recovery", slog.Any("error", why), slog.String("home", s.home.dir), slog.String("remedy", cove.RemedyOf(why)))
	for _, item := range items[:min(len(items), mostLogged)] {
		s.Logger.ErrorContext(ctx, "found in recovery", slog.String("kind", string(item.Kind)), slog.String("id", string(item.ID)), slog.String("tenant", item.Tenant),
			slog.String("name", item.Name), slog.String("provider", item.Provider), slog.String("left", string(item.Left)))
	}
	if err := s.say(); err != nil {
		return err
	}
	return s.serveRecovery(ctx, &recoveryDesk{site: site, decided: make(chan struct{})}, why)
}

// mostLogged bounds how many of the items that were found are in the log.
const mostLogged = 100

// serveRecovery serves every door until the operator decides or the server is to end.
func (s *server) serveRecovery(ctx context.Context, desk *recoveryDesk, why error) error {
	refusing := httpapi.Refusing(httpapi.Config{Logger: s.Logger, Version: s.Version, Health: func(context.Context) wire.Health {
		return wire.Health{Status: wire.Recovering, Message: cove.MessageOf(why) + "; " + cove.RemedyOf(why)}
	}}, why)
	base, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var servers []*http.Server
	ended := make(chan error, mostDoors)
	for _, listener := range []net.Listener{s.tcp, s.socket, s.previews, s.e2bDoor, s.msbDoor} {
		if listener == nil {
			continue
		}
		var handler http.Handler = refusing
		if listener == s.socket {
			handler = desk.beside(refusing)
		}
		srv := httpapi.Server(s.traffic.watch(handler), s.Logger) //nolint:contextcheck // requests have contexts of their own
		srv.BaseContext = func(net.Listener) context.Context { return base }
		srv.ConnContext = withPeer
		servers = append(servers, srv)
		go func() { ended <- srv.Serve(listener) }()
	}
	err := s.awaitDecision(ctx, desk, ended)
	return errors.Join(err, drain(base, end, servers))
}

// awaitDecision returns why the recovery is over.
func (s *server) awaitDecision(ctx context.Context, desk *recoveryDesk, ended <-chan error) error {
	idle := make(chan struct{})
	if s.OnDemand {
		watched, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			if s.traffic.awaitIdle(watched, s.cfg.Server.DaemonIdle, func(context.Context) bool { return false }) {
				close(idle)
			}
		}()
	}
	select {
	case <-desk.decided:
		return errDecided
	case <-ctx.Done():
		return errUndecided
	case <-idle:
		return errUndecided
	case err := <-ended:
		return cove.Wrap(cove.Internal, err, "the server stopped listening")
	}
}

// recoveryPath is where the operator asks about a recovery, on the socket alone: the
// keys of other callers were in the database.
const recoveryPath = "/recovery"

// RecoveryOrder is what an operator has done with what was found.
type RecoveryOrder struct {
	TakeUp  bool      `json:"take_up,omitempty"`
	Discard bool      `json:"discard,omitempty"`
	Only    []cove.ID `json:"only,omitempty"` // of what is discarded; none: all of it
}

// RecoveryReport is what was found, or what was done with it.
type RecoveryReport struct {
	Items []recovery.Item `json:"items"`
	Left  int             `json:"left"`             // how many items wait for a decision
	Error string          `json:"error,omitempty"`  // what could not be done
	Fix   string          `json:"remedy,omitempty"` // and what to do about it
}

// recoveryDesk answers the operator.
type recoveryDesk struct {
	site    *recovery.Site
	busy    atomic.Bool
	decided chan struct{}
}

// beside answers requests about the recovery, and gives others to next.
func (d *recoveryDesk) beside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != recoveryPath || userOf(r).Tenant == "" {
			next.ServeHTTP(w, r)
			return
		}
		var order RecoveryOrder
		if r.Method == http.MethodPost {
			if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&order); err != nil {
				http.Error(w, "the order is not JSON", http.StatusBadRequest)
				return
			}
		}
		report, over := d.do(r.Context(), userOf(r).Name, order)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(report) // the operator may be gone
		if over {
			close(d.decided)
		}
	})
}

// do carries out one order after the other, and reports whether nothing is left to
// decide, which it does once.
func (d *recoveryDesk) do(ctx context.Context, by string, order RecoveryOrder) (report RecoveryReport, over bool) {
	if !d.busy.CompareAndSwap(false, true) {
		return RecoveryReport{Error: "another order is being carried out, or the last one was", Fix: "try again in a moment"}, false
	}
	defer func() {
		if !over {
			d.busy.Store(false)
		}
	}()
	ctx = context.WithoutCancel(ctx) // what was begun is done to its end
	var err error
	switch {
	case order.TakeUp:
		report.Items, err = d.site.TakeUp(ctx, by)
	case order.Discard:
		report.Items, err = d.site.Discard(ctx, by, order.Only)
	default:
		report.Items, err = d.site.Look(ctx)
	}
	left := report.Items
	if (order.TakeUp || order.Discard) && err == nil {
		left, err = d.site.Look(ctx)
	}
	if report.Left = len(left); err != nil {
		report.Error, report.Fix = cove.MessageOf(err), cove.RemedyOf(err)
		return report, false
	}
	return report, report.Left == 0
}

// Recover asks the server of COVE_HOME what it found that its database does not know,
// and has it carry out an order. A server that is not in recovery has found nothing.
func Recover(ctx context.Context, home string, order RecoveryOrder) (report RecoveryReport, err error) {
	h := Home{dir: home}
	health, err := h.greet(ctx)
	if err != nil {
		return report, cove.Wrap(cove.Unavailable, err, "no server runs with the home %s", home).Reason(cove.ReasonConnection).Remedy("start the server, or run any cove sandbox command")
	}
	if health.Status != wire.Recovering {
		return report, nil
	}
	body, err := json.Marshal(order)
	if err != nil {
		return report, err
	}
	err = h.ask(ctx, http.MethodPost, recoveryPath, body, &report)
	if err != nil {
		return report, cove.Wrap(cove.Unavailable, err, "the server of %s gave no answer", home).Reason(cove.ReasonConnection).Remedy("see what its log says, and ask again")
	}
	return report, nil
}
