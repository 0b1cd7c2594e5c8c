package daemon_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/recovery"
)

// recovering starts a server that finds what its database does not know, and waits
// until it says so. end stops it and demands that it ended well.
func recovering(t *testing.T, cfg config.Config) (home daemon.Home, log *bytes.Buffer, ready <-chan daemon.Ready, end func()) {
	t.Helper()
	home, err := daemon.OpenHome(cfg.Home)
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	log = &bytes.Buffer{}
	served, ended := make(chan daemon.Ready, 1), make(chan error, 1)
	go func() {
		ended <- daemon.Serve(ctx, cfg, daemon.Options{Logger: slog.New(slog.NewTextHandler(log, nil)), Ready: func(r daemon.Ready) { served <- r }})
	}()
	end = ending(t, cancel, ended)
	deadline := time.After(30 * time.Second)
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		if status, _ := health(t, home, "/health"); status == http.StatusOK {
			tick.Stop()
			return home, log, served, end
		}
		select {
		case err := <-ended:
			ended <- nil
			t.Fatalf("server: %v", err)
		case r := <-served:
			t.Fatalf("the server serves at %s as if nothing were missing", r.URL)
		case <-deadline:
			t.Fatal("the server says nothing")
		case <-tick.C:
		}
	}
}

// health asks the socket of a COVE_HOME; 0 is no answer.
func health(t *testing.T, home daemon.Home, path string) (status int, body string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", home.Socket())
	}}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://cove"+path, nil)
	check(t, err)
	resp, err := c.Do(req)
	if err != nil {
		return 0, ""
	}
	data, err := io.ReadAll(resp.Body)
	check(t, err)
	check(t, resp.Body.Close())
	return resp.StatusCode, string(data)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%s)", err, cove.RemedyOf(err))
	}
}

// order carries out an order in the server of a home.
func order(t *testing.T, cfg config.Config, o daemon.RecoveryOrder) daemon.RecoveryReport {
	t.Helper()
	report, err := daemon.Recover(t.Context(), cfg.Home, o)
	check(t, err)
	if report.Error != "" {
		t.Fatalf("%s (%s)", report.Error, report.Fix)
	}
	return report
}

// kept is what a server had before its database was lost.
type kept struct {
	running, stopped, tenants, snapshot cove.ID
	volume                              string
}

func run(t *testing.T, p cove.Platform, id cove.ID, line string) string {
	t.Helper()
	ex, err := p.Processes(id).Exec(t.Context(), cove.ExecRequest{Line: line})
	check(t, err)
	if ex.Result.ExitCode != 0 {
		t.Errorf("%s: %+v %s", line, ex.Result, ex.Stderr.Data)
	}
	return string(ex.Stdout.Data)
}

func opened(t *testing.T, p cove.Platform, spec cove.Spec) cove.ID {
	t.Helper()
	s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: spec})
	check(t, err)
	return s.ID
}

// furnish gives a server a session that runs, a snapshot of it, one that is stopped, one
// of another tenant and a volume, between which is called before the last change to each.
func furnish(t *testing.T, cfg config.Config, between func()) kept {
	t.Helper()
	r, end := serve(t, cfg, daemon.Options{})
	defer end()
	p := dial(t, "unix://"+r.Socket, "")
	var k kept
	k.stopped = opened(t, p, cove.Spec{User: "ann", Thread: "1"})
	run(t, p, k.stopped, "echo of ann > f")
	between()
	_, err := p.Sessions().Stop(t.Context(), k.stopped)
	check(t, err)
	v, err := p.Volumes().Create(t.Context(), cove.VolumeRequest{Name: "shared"})
	check(t, err)
	k.volume = v.Name
	k.running = opened(t, p, cove.Spec{User: "bob", Idle: time.Hour, Env: map[string]string{"A": "b"}})
	run(t, p, k.running, "echo of bob > f")
	shot, err := p.Snapshots().Snapshot(t.Context(), k.running, cove.SnapshotRequest{Name: "first"})
	check(t, err)
	k.snapshot = shot.ID
	_, secret, err := p.Admin().CreateKey(t.Context(), cove.KeyRequest{Name: "other", Tenant: "other", Scopes: []cove.Scope{cove.ScopeAll}})
	check(t, err)
	k.tenants = opened(t, dial(t, r.URL, secret), cove.Spec{})
	run(t, dial(t, r.URL, secret), k.tenants, "echo of other > f")
	return k
}

// whole demands that all of it is there and works, also for the other tenant, who has a
// new key.
func (k kept) whole(t *testing.T, r daemon.Ready) {
	t.Helper()
	p := dial(t, "unix://"+r.Socket, "")
	s, err := p.Sessions().Get(t.Context(), k.running)
	check(t, err)
	if s.State != cove.Running || s.Spec.User != "bob" || s.Spec.Idle != time.Hour || s.Tenant != cove.DefaultTenant {
		t.Errorf("the session that ran is %+v", s)
	}
	if got := run(t, p, k.running, "cat f; echo $A"); got != "of bob\nb\n" {
		t.Errorf("its file and its environment have %q", got)
	}
	if s, err = p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{User: "ann", Thread: "1"}}); err != nil || s.ID != k.stopped {
		t.Fatalf("the session that was stopped: %+v, %v", s, err)
	}
	if got := run(t, p, k.stopped, "cat f"); got != "of ann\n" {
		t.Errorf("its file has %q", got)
	}
	if got := run(t, p, opened(t, p, cove.Spec{Snapshot: k.snapshot}), "cat f"); got != "of bob\n" {
		t.Errorf("the snapshot has %q", got)
	}
	if _, err := p.Volumes().Get(t.Context(), k.volume); err != nil {
		t.Errorf("the volume: %v", err)
	}
	_, secret, err := p.Admin().CreateKey(t.Context(), cove.KeyRequest{Name: "other", Tenant: "other", Scopes: []cove.Scope{cove.ScopeAll}})
	check(t, err)
	if got := run(t, dial(t, r.URL, secret), k.tenants, "cat f"); got != "of other\n" {
		t.Errorf("the file of the other tenant has %q", got)
	}
	key, err := os.ReadFile(r.KeyFile)
	check(t, err)
	if _, err := dial(t, r.URL, strings.TrimSpace(string(key))).Sessions().Get(t.Context(), k.running); err != nil {
		t.Errorf("with the first key: %v", err)
	}
}

// databaseFile copies, removes or damages the database of a home.
func databaseFile(cfg config.Config, suffix string) string {
	return filepath.Join(cfg.Home, "cove.db"+suffix)
}

// saved copies a database with its log, as a backup of the disk would have them.
func saved(t *testing.T, cfg config.Config) (back func()) {
	t.Helper()
	files := map[string][]byte{}
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(databaseFile(cfg, suffix))
		check(t, err)
		files[suffix] = data
	}
	return func() {
		for suffix, data := range files {
			check(t, os.WriteFile(databaseFile(cfg, suffix), data, 0o600))
		}
	}
}

func TestLostDatabaseIsRecovered(t *testing.T) {
	for name, c := range map[string]struct {
		before func(t *testing.T, cfg config.Config) (back func()) // called while the server runs
		lose   func(t *testing.T, cfg config.Config)
	}{
		"missing": {lose: func(t *testing.T, cfg config.Config) { check(t, os.Remove(databaseFile(cfg, ""))) }},
		"empty":   {lose: func(t *testing.T, cfg config.Config) { check(t, os.Truncate(databaseFile(cfg, ""), 0)) }},
		"without tables": {lose: func(t *testing.T, cfg config.Config) {
			check(t, os.Remove(databaseFile(cfg, "")))
			db, err := sql.Open("sqlite", databaseFile(cfg, ""))
			check(t, err)
			_, err = db.ExecContext(t.Context(), "PRAGMA journal_mode = DELETE; CREATE TABLE x (id TEXT); DROP TABLE x")
			check(t, err)
			check(t, db.Close())
		}},
		"of another home": {lose: func(t *testing.T, cfg config.Config) {
			other := settings(t)
			_, end := serve(t, other, daemon.Options{})
			end()
			data, err := os.ReadFile(databaseFile(other, ""))
			check(t, err)
			check(t, os.WriteFile(databaseFile(cfg, ""), data, 0o600))
		}},
		"older": {before: saved},
		"with garbage for a log": {before: func(t *testing.T, cfg config.Config) func() {
			data, err := os.ReadFile(databaseFile(cfg, "")) // all that is newer is in the log
			check(t, err)
			return func() {
				check(t, os.WriteFile(databaseFile(cfg, ""), data, 0o600))
				check(t, os.WriteFile(databaseFile(cfg, "-wal"), bytes.Repeat([]byte("garbage "), 4096), 0o600))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := settings(t)
			lose := func() { c.lose(t, cfg) }
			k := furnish(t, cfg, func() {
				if c.before != nil {
					lose = c.before(t, cfg)
				}
			})
			lose()
			home, _, _, stop := recovering(t, cfg)
			refusesAll(t, home, k)
			report := order(t, cfg, daemon.RecoveryOrder{})
			if found := states(report.Items); found[k.running] != "running sandbox" || found[k.stopped] != "stopped archive" || found[k.tenants] != "running sandbox" || len(report.Items) != 5 {
				t.Errorf("found %+v", report.Items)
			}
			stop() // and nothing has changed
			home, log, ready, end := recovering(t, cfg)
			refusesAll(t, home, k)
			if report = order(t, cfg, daemon.RecoveryOrder{TakeUp: true}); len(report.Items) != 5 || report.Left != 0 {
				t.Errorf("taken up: %+v", report)
			}
			k.whole(t, <-ready)
			end()
			if !strings.Contains(log.String(), `msg="in recovery"`) || !strings.Contains(log.String(), "id="+string(k.running)) {
				t.Errorf("the log: %s", log)
			}
		})
	}
}

// states shows sessions by what they will be and what is left of them.
func states(items []recovery.Item) map[cove.ID]string {
	found := map[cove.ID]string{}
	for _, i := range items {
		found[i.ID] = string(i.State) + " " + string(i.Left)
	}
	return found
}

// refusesAll demands that a server in recovery says so, and does nothing.
func refusesAll(t *testing.T, home daemon.Home, k kept) {
	t.Helper()
	if status, body := health(t, home, "/ready"); status != http.StatusServiceUnavailable || !strings.Contains(body, `"status":"recovery"`) || !strings.Contains(body, "cove recover") {
		t.Errorf("/ready: %d %s", status, body)
	}
	p := dial(t, "unix://"+home.Socket(), "")
	_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
	if cove.CodeOf(err) != cove.Unavailable || cove.ReasonOf(err) != cove.ReasonRecovery || !strings.Contains(cove.RemedyOf(err), "cove recover") {
		t.Errorf("open: %v (%s)", err, cove.RemedyOf(err))
	}
	for _, id := range []cove.ID{k.running, k.stopped} {
		if _, err := p.Sessions().Close(t.Context(), id, false); cove.ReasonOf(err) != cove.ReasonRecovery {
			t.Errorf("close: %v", err)
		}
	}
}

func TestDiscardedRecovery(t *testing.T) {
	cfg := settings(t)
	k := furnish(t, cfg, func() {})
	check(t, os.Remove(databaseFile(cfg, "")))
	_, _, ready, _ := recovering(t, cfg)
	if report, err := daemon.Recover(t.Context(), cfg.Home, daemon.RecoveryOrder{Discard: true, Only: []cove.ID{cove.NewID()}}); err != nil || !strings.Contains(report.Error, "not among what was found") {
		t.Errorf("an unknown id: %+v, %v", report, err)
	}
	if report := order(t, cfg, daemon.RecoveryOrder{Discard: true, Only: []cove.ID{k.running}}); len(report.Items) != 1 || report.Left != 4 {
		t.Errorf("one of five: %+v", report)
	}
	if report := order(t, cfg, daemon.RecoveryOrder{Discard: true}); len(report.Items) != 4 || report.Left != 0 {
		t.Errorf("the rest: %+v", report)
	}
	r := <-ready
	p := dial(t, "unix://"+r.Socket, "")
	for s, err := range p.Sessions().List(t.Context(), cove.SessionFilter{}) {
		t.Errorf("still there: %+v, %v", s, err)
	}
	for s, err := range p.Snapshots().List(t.Context(), cove.SnapshotFilter{}) {
		t.Errorf("still there: %+v, %v", s, err)
	}
	for _, dir := range []string{"archives", "volumes"} {
		if left := entries(t, filepath.Join(cfg.Home, dir)); len(left) > 0 {
			t.Errorf("left in %s: %v", dir, left)
		}
	}
	if report := order(t, cfg, daemon.RecoveryOrder{}); len(report.Items) != 0 {
		t.Errorf("a server that serves: %+v", report)
	}
}

// TestLostDatabaseWithoutCopies is a home of a build that made no copies of records: the
// journal says whose sessions were.
func TestLostDatabaseWithoutCopies(t *testing.T) {
	cfg := settings(t)
	k := furnish(t, cfg, func() {})
	check(t, os.Remove(databaseFile(cfg, "")))
	check(t, os.RemoveAll(filepath.Join(cfg.Home, "records")))
	_, _, ready, _ := recovering(t, cfg)
	report := order(t, cfg, daemon.RecoveryOrder{TakeUp: true})
	for _, i := range report.Items {
		tenant := cove.DefaultTenant
		if i.ID == k.tenants {
			tenant = "other"
		}
		if i.Source != recovery.FromJournal || i.Tenant != tenant || i.Owner == "" || i.Provider != "fake" {
			t.Errorf("%+v", i)
		}
	}
	if len(report.Items) != 3 {
		t.Errorf("%+v", report.Items)
	}
	p := dial(t, "unix://"+(<-ready).Socket, "")
	if got := run(t, p, k.running, "cat f"); got != "of bob\n" {
		t.Errorf("the session that ran has %q", got)
	}
	_, err := p.Sessions().Start(t.Context(), k.stopped)
	check(t, err)
	if got := run(t, p, k.stopped, "cat f"); got != "of ann\n" {
		t.Errorf("the session that was stopped has %q", got)
	}
	for _, id := range []cove.ID{k.running, k.stopped} {
		got, err := p.Sessions().Get(t.Context(), id)
		check(t, err)
		if got.Spec.OnEnd != cove.EndStop || got.Spec.Lifetime != 0 {
			t.Errorf("session %s ends with %q after its idle time and after %s in any case; its files are to be kept", id, got.Spec.OnEnd, got.Spec.Lifetime)
		}
	}
}

// TestSessionOfWhichNothingIsLeft has a copy that the database does not know, and neither
// a sandbox nor an archive: there is nothing to decide, and the server says what it lost.
func TestSessionOfWhichNothingIsLeft(t *testing.T) {
	cfg := settings(t)
	_, end := serve(t, cfg, daemon.Options{})
	end()
	lost := &cove.Session{ID: cove.NewID(), Tenant: "t", State: cove.Running, Provider: "fake", Version: 3}
	data, err := json.Marshal(lost)
	check(t, err)
	file := filepath.Join(cfg.Home, "records", "session-"+string(lost.ID)+".json")
	check(t, os.WriteFile(file, data, 0o600))
	var log bytes.Buffer
	r, end := serve(t, cfg, daemon.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var told int
	for e, err := range dial(t, "unix://"+r.Socket, "").Admin().Events(t.Context(), cove.EventFilter{Kind: "session.lost"}) {
		check(t, err)
		if e.Session == lost.ID {
			told++
		}
	}
	end()
	if told != 1 || !strings.Contains(log.String(), "session="+string(lost.ID)) {
		t.Errorf("told %d times, log: %s", told, log.String())
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the copy is still there")
	}
}

func TestEmbeddedPlatformDoesNotRecover(t *testing.T) {
	cfg := settings(t)
	furnish(t, cfg, func() {})
	check(t, os.Remove(databaseFile(cfg, "")))
	_, err := daemon.Embed(t.Context(), cfg, true, slog.New(slog.DiscardHandler))
	if cove.ReasonOf(err) != cove.ReasonRecovery || !strings.Contains(cove.RemedyOf(err), "cove recover") {
		t.Errorf("%v (%s)", err, cove.RemedyOf(err))
	}
}
