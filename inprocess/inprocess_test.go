package inprocess_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/inprocess"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
)

func settings(more ...string) map[string]string {
	m := map[string]string{"POOL_SIZE": "0", "COVE_ADDR": "127.0.0.1:0"}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

func open(t *testing.T, cfg inprocess.Config) *inprocess.Platform {
	t.Helper()
	p, err := inprocess.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestOneOwner(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	cfg := inprocess.Config{Home: home, Provider: "fake", Settings: settings()}
	p := open(t, cfg)
	s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{User: "u", Thread: "t"}})
	if err != nil || !strings.HasPrefix(s.Owner, "os:") || s.Tenant != cove.DefaultTenant {
		t.Fatalf("%+v, %v", s, err)
	}
	_, err = inprocess.Open(t.Context(), cfg)
	wantTaken(t, err, "has Cove inside")
	load := config.Sources{Env: func(name string) (string, bool) {
		v, ok := settings("COVE_HOME", home, "SANDBOX_PROVIDER", "fake")[name]
		return v, ok
	}}
	served, err := config.Load(load)
	if err != nil {
		t.Fatal(err)
	}
	// A server does not start there, and a command does not wait for one.
	wantTaken(t, daemon.Serve(t.Context(), served, daemon.Options{Logger: slog.New(slog.DiscardHandler)}), "has Cove inside")
	_, err = daemon.Connect(t.Context(), served, daemon.Caller{})
	wantTaken(t, err, "has Cove inside")

	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.Sessions().Get(t.Context(), s.ID); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("after the end: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- daemon.Serve(ctx, served, daemon.Options{Logger: slog.New(slog.DiscardHandler), Ready: func(daemon.Ready) { close(ready) }})
	}()
	<-ready
	_, err = inprocess.Open(t.Context(), cfg)
	wantTaken(t, err, "http://127.0.0.1:")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}

	// What the server left is there for the program again.
	if got, err := open(t, cfg).Sessions().Get(t.Context(), s.ID); err != nil || got.State != cove.Running {
		t.Errorf("after all of them: %+v, %v", got, err)
	}
}

func wantTaken(t *testing.T, err error, who string) {
	t.Helper()
	ours, ok := errors.AsType[*cove.Error](err)
	if !ok || ours.Code != cove.Conflict || ours.Details["pid"] != os.Getpid() || !strings.Contains(ours.Message, who) || !strings.Contains(cove.RemedyOf(err), "another directory") {
		t.Errorf("a directory that is taken: %v", err)
	}
}

func TestTenantsOfOneProgram(t *testing.T) {
	p := open(t, inprocess.Config{Home: filepath.Join(t.TempDir(), "home"), Provider: "fake", Settings: settings()})
	a := p.As(cove.Principal{Name: "a", Tenant: "a", Scopes: []cove.Scope{cove.ScopeAll}})
	b := p.As(cove.Principal{Name: "b", Tenant: "b", Scopes: []cove.Scope{cove.ScopeAll}})
	s, err := a.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Sessions().Get(t.Context(), s.ID); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("another tenant's session: %v", err)
	}
}

// TestContextOfOpen: it bounds the opening, not what was opened.
func TestContextOfOpen(t *testing.T) {
	cfg := inprocess.Config{Home: filepath.Join(t.TempDir(), "home"), Provider: "fake", Settings: settings()}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := inprocess.Open(ctx, cfg); cove.CodeOf(err) != cove.Canceled {
		t.Errorf("with a context that has ended: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	p, err := inprocess.Open(ctx, cfg)
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "echo hi"}); err != nil || string(x.Stdout.Data) != "hi\n" {
		t.Errorf("%+v, %v", x, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestSettings(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	t.Setenv("COVE_HOME", home)
	t.Setenv("SANDBOX_TYPE", "docker") // SANDBOX_PROVIDER under its other name
	t.Setenv("MSB_MAX_SESSIONS", "7")
	t.Setenv("MSB_MAX_TOTAL_MEMORY_MB", "4096")
	data := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(data, "shop"), 0o700), os.WriteFile(filepath.Join(data, "shop", "orders.csv"), []byte("id\n1\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	p := open(t, inprocess.Config{Provider: "fake", Settings: settings("MSB_MAX_SESSIONS", "3", "COVE_DATASETS", data)})
	got, err := p.Admin().Stats(t.Context())
	if err != nil || got.MaxSessions != 3 || got.MaxMemory != 4*cove.GiB || got.Provider != "fake" {
		t.Errorf("%+v, %v", got, err)
	}
	for set, err := range p.Datasets().List(t.Context(), cove.DatasetFilter{}) {
		if err != nil || set.ID != "shop" {
			t.Errorf("%+v, %v", set, err)
		}
		data = ""
	}
	if data != "" {
		t.Error("nobody knows the dataset of the settings")
	}
	if _, err := os.Stat(filepath.Join(home, "cove.db")); err != nil {
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "home")
	for name, c := range map[string]struct {
		cfg  inprocess.Config
		code cove.Code
		text string
	}{
		"a name that is none":    {inprocess.Config{Home: home, Settings: settings("SANDBOX_PROVIDR", "fake")}, cove.Invalid, "SANDBOX_PROVIDR"},
		"no name":                {inprocess.Config{Home: home, Settings: settings("", "fake")}, cove.Invalid, "not a setting"},
		"a value that is none":   {inprocess.Config{Home: home, Provider: "fake", Settings: settings("POOL_SIZE", "many")}, cove.Invalid, "POOL_SIZE"},
		"an unknown provider":    {inprocess.Config{Home: home, Provider: "nonsense"}, cove.Invalid, "nonsense"},
		"a file":                 {inprocess.Config{Home: file, Provider: "fake"}, cove.Invalid, file},
		"below a file":           {inprocess.Config{Home: filepath.Join(file, "home"), Provider: "fake"}, cove.Unavailable, file},
		"what this build is not": {inprocess.Config{Home: home, Provider: "fake", Settings: settings("REDIS_URL", "redis://h")}, cove.Invalid, "REDIS_URL"},
	} {
		p, err := inprocess.Open(t.Context(), c.cfg)
		if cove.CodeOf(err) != c.code || !errors.Is(err, cove.ErrConfiguration) || !strings.Contains(err.Error(), c.text) || p != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefusedIsNotHeld: what could not be opened is not held.
func TestRefusedIsNotHeld(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	if _, err := inprocess.Open(t.Context(), inprocess.Config{Home: home, Provider: "fake", Settings: settings("SANDBOX_FALLBACK", "nonsense")}); err == nil {
		t.Fatal("it worked")
	}
	open(t, inprocess.Config{Home: home, Provider: "fake", Settings: settings()})
}
