// Package daemontest runs a server for the time of a test, as cove serve does. It
// must not be imported by anything but tests.
package daemontest

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// Serve runs a server with these settings, by their names, in a COVE_HOME of its
// own on a free port, until the test ends. It returns where the server is, and the
// key for everything.
func Serve(t *testing.T, settings map[string]string) (at daemon.Ready, key string) {
	t.Helper()
	return ServeWith(t, settings, daemon.Parts{})
}

// ServeWith is Serve with parts in the place of those that the settings name.
func ServeWith(t *testing.T, settings map[string]string, parts daemon.Parts) (at daemon.Ready, key string) {
	t.Helper()
	env := map[string]string{"COVE_HOME": filepath.Join(t.TempDir(), "home"), "COVE_ADDR": "127.0.0.1:0"}
	maps.Copy(env, settings)
	cfg, err := config.Load(config.Sources{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, ended := make(chan daemon.Ready, 1), make(chan error, 1)
	go func() {
		ended <- daemon.Serve(ctx, cfg, daemon.Options{Logger: slog.New(slog.DiscardHandler), Parts: parts, Ready: func(r daemon.Ready) { ready <- r }})
	}()
	select {
	case at = <-ready:
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	text, err := os.ReadFile(at.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return at, strings.TrimSpace(string(text))
}
