//go:build linux

package docker_test

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/docker"
)

// door is the process, on this machine, through which a sandbox is reached.
func door(t *testing.T, host string, id cove.ID) int {
	t.Helper()
	top, err := engineClient(t, host).ContainerTop(t.Context(), "cove-"+string(id), client.ContainerTopOptions{Arguments: []string{"-eo", "pid,args"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range top.Processes {
		if len(row) == 2 && strings.HasSuffix(row[1], "cove-agent door") {
			if pid, err := strconv.Atoi(row[0]); err == nil {
				return pid
			}
		}
	}
	t.Fatalf("there is no door: %v", top.Processes)
	return 0
}

// killDoor does what the kernel does to a process when there is no memory.
func killDoor(t *testing.T, host string, id cove.ID) {
	t.Helper()
	if !strings.HasPrefix(host, "unix://") {
		t.Skip("the engine's processes are not on this machine")
	}
	if err := unix.Kill(door(t, host, id), unix.SIGKILL); err != nil {
		t.Skipf("the engine's processes are not ours to kill: %v", err)
	}
}

// alive demands that a sandbox does not say that it died.
func alive(t *testing.T, s cove.Sandbox) {
	t.Helper()
	m, _ := cove.As[cove.Mortal](s)
	select {
	case <-m.Died():
		t.Error("the sandbox says that it died")
	default:
	}
}

// TestDoorKilled kills the process through which a sandbox is reached, and nothing
// else.
func TestDoorKilled(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	cfg.Egress.World = &world{web()}
	p := openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	s := create(t, p, cove.Spec{Network: cove.Network{Mode: cove.NetworkAllow, Allow: []string{"good.test"}}})
	output(t, s, "echo here > file")
	plain := sleeper(t, s)
	kept, err := s.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", "until test -e go; do sleep 0.05; done; echo on"}, Keep: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	killDoor(t, cfg.Host, s.ID())
	lost(t, plain, cove.Unavailable, "the connection to sandbox", "run it again")
	lost(t, kept, cove.Unavailable, "unless it is kept", "run it again")
	if got := output(t, s, "cat file; pgrep -f '[s]leep 1000' || echo none; curl -sS -m 20 http://good.test/"); got != "here\nnone\nhello key=\n" {
		t.Errorf("afterwards a program says %q", got)
	}
	var out strings.Builder
	r, _ := cove.As[cove.Resumer](s)
	again, err := r.Resume(t.Context(), "kept", cove.Command{Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Files().Write(t.Context(), "go", strings.NewReader(""), 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if end, err := again.Wait(ctx); err != nil || end.ExitCode != 0 || out.String() != "on\n" {
		t.Errorf("what is kept ends as %+v, %v, and says %q", end, err, out.String())
	}
	e, _ := cove.As[cove.Egress](s)
	if err := e.SetNetwork(t.Context(), cove.Network{Mode: cove.NetworkAllow, Allow: []string{"good.test", "other.test:8080"}}); err != nil {
		t.Errorf("the network cannot be changed any more: %v", err)
	}
	alive(t, s)
	if err := s.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, cfg.Host, cfg.Dir)
}

// cuttable stands before an engine, and can break all connections.
type cuttable struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cuttable) proxy(t *testing.T, host string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(); c.cut() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", strings.TrimPrefix(host, "unix://"))
			if err != nil {
				_ = near.Close()
				continue
			}
			c.mu.Lock()
			c.conns = append(c.conns, near, far)
			c.mu.Unlock()
			for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					_, _ = near.Close(), far.Close()
				}()
			}
		}
	}()
	return "unix://" + path
}

func (c *cuttable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// cutOff is a provider whose connections to its engine can be broken.
func cutOff(t *testing.T) (p *docker.Provider, host, dir string, cut func()) {
	t.Helper()
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	if !strings.HasPrefix(cfg.Host, "unix://") {
		t.Skip("the engine is not on a socket")
	}
	host = cfg.Host
	var c cuttable
	cfg.Host = c.proxy(t, host)
	p = openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	return p, host, cfg.Dir, c.cut
}

// TestConnectionBreaks is about a connection that breaks while its sandbox is paused:
// it stays so.
func TestConnectionBreaks(t *testing.T) {
	p, host, dir, cut := cutOff(t)
	s := create(t, p, cove.Spec{})
	program := sleeper(t, s)
	pauser, _ := cove.As[cove.Pauser](s)
	if err := pauser.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	cut()
	lost(t, program, cove.Unavailable, "the connection to sandbox", "run it again")
	if err := pauser.Pause(t.Context()); err != nil { // and wait for who has the turn
		t.Error(err)
	}
	if c := inspect(t, host, s.ID()); !c.State.Paused {
		t.Error("the sandbox is not paused any more")
	}
	if err := pauser.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := output(t, s, "echo on"); got != "on\n" {
		t.Errorf("after that it prints %q", got)
	}
	alive(t, s)
	if err := s.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, host, dir)
}

// TestConnectionBreaksAgain is about connections that do not hold: there is no end to
// opening others otherwise.
func TestConnectionBreaksAgain(t *testing.T) {
	p, host, dir, cut := cutOff(t)
	s := create(t, p, cove.Spec{})
	m, _ := cove.As[cove.Mortal](s)
	late := time.Now().Add(patience)
	for dead := false; !dead && time.Now().Before(late); {
		cut()
		select {
		case <-m.Died():
			dead = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	died(t, s)
	if err := s.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, host, dir)
}
