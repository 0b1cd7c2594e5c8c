package daemon_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

func TestMain(m *testing.M) {
	local.Main()
	// Connect starts this very program, which must not run the tests again. It
	// plays a server that says nothing and ends.
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		os.Exit(9)
	}
	// A keeper ends some seconds after it has nothing to hold; its parent waits.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/cove-sandbox/cove/internal/keeper.start.func2"))
}

// settings returns those of a fresh COVE_HOME on the fake provider.
func settings(t *testing.T, pairs ...string) config.Config {
	t.Helper()
	env := map[string]string{
		"COVE_HOME": filepath.Join(t.TempDir(), "home"), "SANDBOX_PROVIDER": "fake", "POOL_SIZE": "0", "COVE_ADDR": "127.0.0.1:0",
	}
	for i := 0; i < len(pairs); i += 2 {
		env[pairs[i]] = pairs[i+1]
	}
	cfg, err := config.Load(config.Sources{Env: func(n string) (string, bool) { v, ok := env[n]; return v, ok }})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// serve runs a server; end stops it and demands that it ended well.
func serve(t *testing.T, cfg config.Config, o daemon.Options) (r daemon.Ready, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan daemon.Ready, 1), make(chan error, 1)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Ready = func(r daemon.Ready) { ready <- r }
	go func() { ended <- daemon.Serve(ctx, cfg, o) }()
	end = ending(t, cancel, ended)
	select {
	case r = <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatalf("server: %v", err)
	}
	return r, end
}

// ending stops a server once, by the end of the test at the latest, and demands that it
// ended well.
func ending(t *testing.T, stop context.CancelFunc, ended <-chan error) (end func()) {
	end = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("server: %v", err)
		}
	})
	t.Cleanup(end)
	return end
}

// needProvider skips the test, or fails it, where a provider cannot run here.
func needProvider(t *testing.T, cfg config.Config, provider string) {
	t.Helper()
	reports, err := daemon.Doctor(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range reports {
		if p.Name == provider {
			providertest.Require(t, p.Name, p.Capabilities)
		}
	}
}

func dial(t *testing.T, address, key string) *client.Client {
	t.Helper()
	c, err := client.New(address, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestServerKeepsSessionsAcrossRestarts(t *testing.T) {
	cfg := settings(t)
	r, end := serve(t, cfg, daemon.Options{})
	if !r.KeyCreated || r.PID != os.Getpid() {
		t.Errorf("%+v", r)
	}
	s, err := dial(t, "unix://"+r.Socket, "").Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if me := s.Owner; !strings.HasPrefix(me, "os:") {
		t.Errorf("owner %s", me)
	}
	end()

	r, end = serve(t, cfg, daemon.Options{})
	defer end()
	if r.KeyCreated {
		t.Error("a second key was made")
	}
	key, err := os.ReadFile(r.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	again, err := dial(t, r.URL, strings.TrimSpace(string(key))).Sessions().Get(t.Context(), s.ID)
	if err != nil || again.State != cove.Running {
		t.Errorf("%v, %v", again, err)
	}
	if _, err := dial(t, r.URL, "").Sessions().Get(t.Context(), s.ID); cove.CodeOf(err) != cove.Unauthenticated {
		t.Errorf("without a key: %v", err)
	}
	if _, err := dial(t, "unix://"+r.Socket, "cove_wrong").Sessions().Get(t.Context(), s.ID); cove.CodeOf(err) != cove.Unauthenticated {
		t.Errorf("with a wrong key on the socket: %v", err)
	}
}

func TestServerDrainsWhatIsUnderWay(t *testing.T) {
	cfg := settings(t)
	r, end := serve(t, cfg, daemon.Options{})
	c := dial(t, "unix://"+r.Socket, "")
	s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{})
	result := make(chan error, 1)
	go func() {
		ex, err := c.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{
			Line: "echo begun; sleep 0.5; echo done", OnOutput: func(ch cove.Chunk) {
				if strings.Contains(string(ch.Data), "begun") {
					close(begun)
				}
			},
		})
		if err == nil && string(ex.Stdout.Data) != "begun\ndone\n" {
			err = errors.New(string(ex.Stdout.Data))
		}
		result <- err
	}()
	<-begun
	end()
	if err := <-result; err != nil {
		t.Errorf("the program under way: %v", err)
	}
}

func TestConnectFindsAServer(t *testing.T) {
	cfg := settings(t)
	_, _ = serve(t, cfg, daemon.Options{Version: "v1"})
	var notes []string
	c, err := daemon.Connect(t.Context(), cfg, daemon.Caller{Version: "v2", Notify: func(text string) { notes = append(notes, text) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Admin().Stats(t.Context()); err != nil {
		t.Error(err)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "is version v1 and this is v2") {
		t.Errorf("notes: %q", notes)
	}
	d, err := daemon.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
}

func TestConnectTellsWhyThereIsNoServer(t *testing.T) {
	cfg := settings(t)
	_, err := daemon.Connect(t.Context(), cfg, daemon.Caller{})
	if cove.CodeOf(err) != cove.Unavailable || !strings.Contains(err.Error(), "the server ended while it was starting: exit status 9") {
		t.Errorf("a server that dies: %v", err)
	}
	if _, err := daemon.Dial(t.Context(), cfg); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("dial: %v", err)
	}

	// Somebody holds COVE_HOME and does not answer.
	home, err := daemon.OpenHome(cfg.Home)
	if err != nil {
		t.Fatal(err)
	}
	free, err := home.TakeHome(t.Context(), 0, daemon.Holder{PID: 42, Address: "http://x"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = free() }()
	_, err = daemon.Connect(t.Context(), cfg, daemon.Caller{Wait: 100 * time.Millisecond})
	if cove.CodeOf(err) != cove.Unavailable || !strings.Contains(err.Error(), "process 42 at http://x serves") || !strings.Contains(cove.RemedyOf(err), "kill 42") {
		t.Errorf("a server that is silent: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := daemon.Connect(ctx, cfg, daemon.Caller{}); cove.CodeOf(err) != cove.Timeout {
		t.Errorf("an interrupted wait: %v", err)
	}

	// Somebody else starts one, and takes too long.
	l, err := home.TakeSpawn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l() }()
	if _, err := daemon.Connect(t.Context(), cfg, daemon.Caller{Wait: 100 * time.Millisecond}); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("a crowd: %v", err)
	}
}

func TestConnectMistrustsOtherServers(t *testing.T) {
	cfg := settings(t)
	home, err := daemon.OpenHome(cfg.Home)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", home.Socket())
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.NotFoundHandler()}
	go func() { _ = srv.Serve(l) }()
	defer func() { _ = srv.Close() }()
	if _, err := daemon.Dial(t.Context(), cfg); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("a server that is not ours: %v", err)
	}
}

func TestServersThatCannotStart(t *testing.T) {
	for name, tc := range map[string]struct {
		pairs []string
		mess  func(t *testing.T, home string)
		words string
	}{
		"no bucket":        {pairs: []string{"COVE_ARCHIVE_URL", "s3://b"}, words: "COVE_ARCHIVE_URL: the address of the archives names no bucket"},
		"no credentials":   {pairs: []string{"COVE_ARCHIVE_URL", "s3://bucket"}, words: "COVE_ARCHIVE_URL: the archives are in a bucket, and there are no credentials"},
		"a bucket nowhere": {pairs: []string{"COVE_ARCHIVE_URL", "s3://bucket?endpoint=http://127.0.0.1:1", "COVE_ARCHIVE_ACCESS_KEY", "k", "COVE_ARCHIVE_SECRET_KEY", "s"}, words: "COVE_ARCHIVE_URL: the bucket bucket at 127.0.0.1:1 does not answer"},
		"archives nowhere": {pairs: []string{"COVE_ARCHIVE_URL", "file:///dev/null/x"}, words: "COVE_ARCHIVE_URL: /dev/null/x"},
		"bad policy": {pairs: nil, words: "policies.p: ", mess: func(t *testing.T, home string) {
			t.Helper()
			put(t, filepath.Join(home, "config.yaml"), "policies:\n  p: {allow: [eval]}\n")
		}},
		"bad database": {words: "cove.db", mess: func(t *testing.T, home string) {
			t.Helper()
			put(t, filepath.Join(home, "cove.db"), strings.Repeat("not a database", 100))
		}},
		"bad output": {words: "COVE_HOME: ", mess: func(t *testing.T, home string) {
			t.Helper()
			put(t, filepath.Join(home, "output"), "")
		}},
		"bad providers": {words: "provider fake", mess: func(t *testing.T, home string) {
			t.Helper()
			put(t, filepath.Join(home, "providers"), "")
		}},
		"bad key": {words: "admin.key", mess: func(t *testing.T, home string) {
			t.Helper()
			put(t, filepath.Join(home, "admin.key"), "x")
		}},
		"bad socket": {words: "COVE_HOME: ", mess: func(t *testing.T, home string) {
			t.Helper()
			put(t, filepath.Join(home, "cove.sock", "x"), "")
		}},
		"bad lock": {words: "COVE_HOME: ", mess: func(t *testing.T, home string) {
			t.Helper()
			put(t, filepath.Join(home, "cove.lock", "x"), "")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := settings(t, tc.pairs...)
			if tc.mess != nil {
				tc.mess(t, cfg.Home)
				cfg = settings(t, append(tc.pairs, "COVE_HOME", cfg.Home)...)
			}
			err := daemon.Serve(t.Context(), cfg, daemon.Options{Logger: slog.New(slog.DiscardHandler)})
			if err == nil || !strings.Contains(err.Error(), tc.words) {
				t.Errorf("got %v, want words %q", err, tc.words)
			}
			if home, err := daemon.OpenHome(cfg.Home); err == nil {
				if _, served, _ := home.WhoServes(); served {
					t.Error("COVE_HOME is still held")
				}
			}
		})
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestArchivesInAnotherDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "elsewhere")
	cfg := settings(t, "COVE_ARCHIVE_URL", "file://"+dir)
	r, end := serve(t, cfg, daemon.Options{})
	c := dial(t, "unix://"+r.Socket, "")
	s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Sessions().Stop(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if names := entries(t, dir); len(names) == 0 {
		t.Error("no archive there")
	}
	end()
}

func TestOneShotsShareNothingWithTheServer(t *testing.T) {
	cfg := settings(t)
	r, _ := serve(t, cfg, daemon.Options{})
	s, err := dial(t, "unix://"+r.Socket, "").Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := daemon.OneShot(t.Context(), cfg, cove.Spec{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Sessions().Get(t.Context(), s.ID); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("the server's session: %v", err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := dial(t, "unix://"+r.Socket, "").Sessions().Usage(t.Context(), s.ID); err != nil {
		t.Errorf("the server's sandbox is gone: %v", err)
	}
	journals, err := daemon.Journals(cfg.Home)
	if err != nil || len(journals) != 2 {
		t.Errorf("journals %v, %v", journals, err)
	}
}

func TestLevels(t *testing.T) {
	for word, want := range map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError} {
		if got := daemon.Level(word); got != want {
			t.Errorf("%s: %v", word, got)
		}
	}
}

// TestSlowClientIsNoFailure: one that keeps a request open is broken off when the
// server has waited for long enough, and the server ends as it should.
func TestSlowClientIsNoFailure(t *testing.T) {
	begun := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	}))
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-begun
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := daemon.Shut(over, srv.Config); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection: %v", err)
	}
}

// TestCallersCannotChooseToPretend: the provider that isolates nothing is there
// only where the operator named it.
func TestCallersCannotChooseToPretend(t *testing.T) {
	cfg := settings(t, "SANDBOX_PROVIDER", "local")
	needProvider(t, cfg, "local")
	r, end := serve(t, cfg, daemon.Options{})
	defer end()
	admin := adminOf(t, r)
	defer admin.Close()
	_, err := admin.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Provider: "fake"}})
	if cove.CodeOf(err) != cove.Invalid || !strings.Contains(err.Error(), "use one of docker, e2b, gvisor, local, microsandbox") {
		t.Errorf("%v", err)
	}
}
