package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
)

// server runs cove serve on a COVE_HOME with a provider and returns how to end
// it with a signal.
func server(t *testing.T, home, provider string) (end func(syscall.Signal)) {
	t.Helper()
	return serverOf(t, "cove", home, provider)
}

// serverOf is server with another executable.
func serverOf(t *testing.T, executable, home, provider string) (end func(syscall.Signal)) {
	t.Helper()
	cmd := exec.Command(executable, "serve", "--addr", "127.0.0.1:0")
	cmd.Env = append(os.Environ(),
		"COVE_HOME="+home, "SANDBOX_PROVIDER="+provider, "POOL_SIZE=0", "MSB_MAX_TOTAL_MEMORY_MB=67108864", "COVE_LOG_LEVEL=error")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // one of the ends is a kill
	}()
	end = func(sig syscall.Signal) {
		_ = cmd.Process.Signal(sig) // it may have ended
		<-done
	}
	t.Cleanup(func() { end(syscall.SIGKILL) })
	// The lock may still hold what a server said that was killed.
	if !eventually(30*time.Second, func() bool { h, ok := serving(home); return ok && h.PID == cmd.Process.Pid }) {
		end(syscall.SIGKILL)
		t.Fatalf("no server: %s", log.String())
	}
	return end
}

func connect(t *testing.T, home string) *client.Client {
	t.Helper()
	c, err := client.New("unix://"+filepath.Join(home, "cove.sock"), "", client.WithAutoRetry(false)) // what the server says is looked at
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A server is killed in the middle of a thousand opens and closes. After a
// restart the table, the provider and the journal agree.
func TestKilledServerAgreesWithItself(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	end := server(t, home, "fake")
	c := connect(t, home)
	const callers = 1000
	var opened, closed atomic.Int64
	enough := make(chan struct{})
	var once sync.Once
	counted := func(n *atomic.Int64) {
		n.Add(1)
		if opened.Load() >= callers/3 && closed.Load() >= callers/20 {
			once.Do(func() { close(enough) })
		}
	}
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range callers {
		all.Go(func() {
			s, err := c.Sessions().Open(ctx, cove.OpenRequest{})
			if err != nil {
				return // the server is gone
			}
			counted(&opened)
			if i%3 == 0 {
				return // and stays open
			}
			if _, err := c.Sessions().Close(ctx, s.ID, false); err == nil {
				counted(&closed)
			}
		})
	}
	<-enough
	end(syscall.SIGKILL)
	cancel()
	all.Wait()

	end = server(t, home, "fake")
	defer end(syscall.SIGTERM)
	c = connect(t, home)
	table := map[cove.ID]bool{}
	for s, err := range c.Sessions().List(t.Context(), cove.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		table[s.ID] = true
		if _, err := c.Sessions().Usage(t.Context(), s.ID); err != nil {
			t.Errorf("%s is in the table and not alive: %v", s.ID, err)
		}
	}
	provider := map[cove.ID]bool{}
	entries, err := os.ReadDir(filepath.Join(home, "providers", "fake"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if id := cove.ID(e.Name()); id.Valid() {
			provider[id] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(table)), slices.Sorted(maps.Keys(provider))); diff != "" {
		t.Errorf("table and provider: %s", diff)
	}
	checkJournal(t, c, table)

	verify := exec.Command("cove", "audit", "verify")
	verify.Env = append(os.Environ(), "COVE_HOME="+home)
	if out, err := verify.CombinedOutput(); err != nil || !strings.Contains(string(out), "all good") {
		t.Errorf("verify: %v\n%s", err, out)
	}
}

// checkJournal demands that every session of the table was opened, and that
// none that was closed is in it.
func checkJournal(t *testing.T, c *client.Client, table map[cove.ID]bool) {
	t.Helper()
	opened, closing, closed, recovered := map[cove.ID]bool{}, map[cove.ID]bool{}, map[cove.ID]bool{}, map[cove.ID]bool{}
	for e, err := range c.Admin().Events(t.Context(), cove.EventFilter{Kind: "session."}) {
		if err != nil {
			t.Fatal(err)
		}
		done := e.Phase == cove.AfterIt && e.Code == ""
		switch {
		case e.Kind == string(cove.SessionOpen) && done:
			opened[e.Session] = true
		case e.Kind == string(cove.SessionClose) && e.Phase == cove.Intent:
			closing[e.Session] = true
		case e.Kind == string(cove.SessionClose) && done:
			closed[e.Session] = true
		case e.Kind == "session.recovered":
			recovered[e.Session] = true
		}
	}
	if len(opened) < 100 || len(closed) < 10 {
		t.Errorf("only %d opened and %d closed: killed too early to show anything", len(opened), len(closed))
	}
	for id := range table {
		if !recovered[id] {
			t.Errorf("%s is in the table and the journal does not say that it was recovered", id)
		}
		if closed[id] {
			t.Errorf("%s was closed and is in the table", id)
		}
	}
	for id := range opened {
		if !closed[id] && !table[id] && !closing[id] {
			t.Errorf("%s was opened, is gone, and the journal does not say why", id)
		}
	}
}
