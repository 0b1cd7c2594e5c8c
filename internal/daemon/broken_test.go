package daemon_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

func ask(t *testing.T, address string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// start runs a server and returns how it ends.
func start(ctx context.Context, t *testing.T, pairs []string, o daemon.Options) (daemon.Ready, <-chan error) {
	t.Helper()
	ready, ended := make(chan daemon.Ready, 1), make(chan error, 1)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Ready = func(r daemon.Ready) { ready <- r }
	cfg := settings(t, pairs...)
	go func() { ended <- daemon.Serve(ctx, cfg, o) }()
	select {
	case r := <-ready:
		return r, ended
	case err := <-ended:
		t.Fatalf("server: %v", err)
	}
	return daemon.Ready{}, nil
}

func TestServerWithoutJournalIsNotReady(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, ended := start(ctx, t, nil, daemon.Options{})
	if code, body := ask(t, r.URL+"/ready"); code != http.StatusOK {
		t.Errorf("before: %d %s", code, body)
	}
	if err := os.RemoveAll(filepath.Join(r.Home, "journal")); err != nil {
		t.Fatal(err)
	}
	code, body := ask(t, r.URL+"/ready")
	if code != http.StatusServiceUnavailable || !strings.Contains(body, `"unavailable"`) || !strings.Contains(body, "removed, replaced or shortened") {
		t.Errorf("/ready: %d %s", code, body)
	}
	if code, body := ask(t, r.URL+"/health"); code != http.StatusOK || !strings.Contains(body, `"status":"unavailable"`) {
		t.Errorf("/health: %d %s", code, body)
	}
	if _, err := dial(t, "unix://"+r.Socket, "").Sessions().Open(t.Context(), cove.OpenRequest{}); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("a session without a journal: %v", err)
	}
	cancel()
	if err := <-ended; cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("the end: %v", err)
	}
}

func TestServerOnDemandEndsWithItsJournal(t *testing.T) {
	t.Chdir(".") // a server on demand goes elsewhere
	r, ended := start(t.Context(), t, nil, daemon.Options{OnDemand: true})
	if err := os.RemoveAll(filepath.Join(r.Home, "journal")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; cove.CodeOf(err) != cove.Unavailable || !strings.Contains(err.Error(), "removed, replaced or shortened") {
		t.Errorf("got %v", err)
	}
	home, err := daemon.OpenHome(r.Home)
	if err != nil {
		t.Fatal(err)
	}
	if who, served, err := home.WhoServes(); served || err != nil {
		t.Errorf("served by %v, %v", who, err)
	}
}

// TestConnectLeavesAServerThatEnds: one that can do nothing is waited for, and
// another one is started.
func TestConnectLeavesAServerThatEnds(t *testing.T) {
	t.Chdir(".") // a server on demand goes elsewhere
	r, ended := start(t.Context(), t, nil, daemon.Options{OnDemand: true})
	if err := os.RemoveAll(filepath.Join(r.Home, "journal")); err != nil {
		t.Fatal(err)
	}
	_, err := daemon.Connect(t.Context(), settings(t, "COVE_HOME", r.Home), daemon.Caller{})
	if cove.CodeOf(err) != cove.Unavailable || !strings.Contains(err.Error(), "exit status 9") {
		t.Errorf("the next server was not started: %v", err)
	}
	<-ended
}

// TestFullHomeStillTalksToItsServer: who only asks needs no room.
func TestFullHomeStillTalksToItsServer(t *testing.T) {
	dir := mount(t, 0, "size=4m,mode=0700")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, ended := start(ctx, t, []string{"COVE_HOME", dir}, daemon.Options{})
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	_ = filler.Close()
	if _, err := daemon.OpenHome(dir); err == nil {
		t.Fatalf("the disk is not full: %v", syscall.ENOSPC)
	}
	c, err := daemon.Connect(t.Context(), settings(t, "COVE_HOME", r.Home), daemon.Caller{})
	if err != nil {
		t.Errorf("a server that answers: %v", err)
	} else {
		_ = c.Close()
	}
	if err := os.Remove(filler.Name()); err != nil {
		t.Error(err)
	}
	cancel()
	<-ended
}

func TestConnectMistrustsAHomeOfOthers(t *testing.T) {
	r, _ := serve(t, settings(t), daemon.Options{})
	if err := os.Chmod(r.Home, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := daemon.Connect(t.Context(), settings(t, "COVE_HOME", r.Home), daemon.Caller{})
	if err == nil || !strings.Contains(err.Error(), "can be changed by others") {
		t.Errorf("got %v", err)
	}
}

// A run keeps nothing for others, and looks at nothing that is about others. What
// stays, and is no server that somebody started, is no node.
func TestSettingsOfClusters(t *testing.T) {
	redis := settings(t, "REDIS_URL", "redis://127.0.0.1:1")
	_, embedded := daemon.Embed(t.Context(), redis, false, slog.New(slog.DiscardHandler))
	onDemand := daemon.Serve(t.Context(), redis, daemon.Options{OnDemand: true, Logger: slog.New(slog.DiscardHandler)})
	for name, err := range map[string]error{"inside a program": embedded, "on demand": onDemand} {
		if cove.CodeOf(err) != cove.Invalid || !strings.Contains(err.Error(), "REDIS_URL: makes") {
			t.Errorf("%s: %v", name, err)
		}
	}
	l, err := daemon.OneShot(t.Context(), settings(t, "SANDBOX_BLOCK_DANGEROUS_IMPORTS", "false", "COVE_ARCHIVE_URL", "s3://bucket", "REDIS_URL", "redis://127.0.0.1:1"), cove.Spec{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

type safeText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *safeText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// TestLeftWhileItStarts: who leaves while a platform starts is not told that a
// provider is to blame.
func TestLeftWhileItStarts(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := daemon.OneShot(ctx, settings(t), cove.Spec{}, false); cove.CodeOf(err) != cove.Canceled {
		t.Errorf("got %v", err)
	}
}
