package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Server is a Redis server. Its methods fail the test where they cannot do what
// they say.
type Server struct {
	t    testing.TB
	exe  string
	dir  string
	port int
	args []string

	socket string

	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// patience is how long a server may take to do as it is told: a slow machine
// needs seconds, and nothing is ever waited for without end.
const patience = 30 * time.Second

// Start starts a server that writes everything to its disk. The test is skipped
// where there is no redis-server, and fails where COVE_REQUIRE names redis.
func Start(t testing.TB) *Server {
	t.Helper()
	return start(t, "--appendonly", "yes", "--appendfsync", "everysec")
}

func start(t testing.TB, args ...string) *Server {
	t.Helper()
	exe, err := exec.LookPath("redis-server")
	if err != nil {
		why := "there is no redis-server in the PATH; scripts/setup.sh test installs it"
		if slices.Contains(strings.Split(os.Getenv("COVE_REQUIRE"), ","), "redis") {
			t.Fatalf("COVE_REQUIRE names redis, and %s", why)
		}
		t.Skip(why)
	}
	short, err := os.MkdirTemp("", "redis") //nolint:usetesting // a socket's path cannot be long
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, exe: exe, dir: t.TempDir(), args: args, socket: filepath.Join(short, "s")}
	t.Cleanup(func() {
		s.Stop()
		if err := os.RemoveAll(short); err != nil {
			t.Error(err)
		}
	})
	const tries = 10
	for range tries { // somebody else may take the port before the server does
		s.port = freePort(t)
		if s.begin() {
			return s
		}
	}
	log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	t.Fatalf("redis-server does not start:\n%s", log)
	return nil
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal("a TCP listener without a port")
	}
	return addr.Port
}

// begin starts the server and reports whether it, and nobody else, answers at its port.
func (s *Server) begin() bool {
	conf := filepath.Join(s.dir, "conf") // a Sentinel writes to it
	if _, err := os.Stat(conf); err != nil {
		if err := os.WriteFile(conf, nil, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	args := append([]string{
		conf, "--unixsocket", s.Socket(), "--port", fmt.Sprint(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--daemonize", "no",
		"--loglevel", "warning", "--logfile", filepath.Join(s.dir, "log"), "--protected-mode", "no",
		"--enable-debug-command", "local", // tests compare digests of all that it has
	}, s.args...)
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), s.exe, args...) //nolint:gosec // the one in the PATH
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("start redis-server: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // it is killed
	}()
	s.cmd, s.done = cmd, done
	mine := fmt.Sprintf("process_id:%d\r", cmd.Process.Pid)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		select {
		case <-done:
			return false
		default:
		}
		if info, err := s.ask("INFO", "server"); err == nil && strings.Contains(info, mine) {
			if info, err = s.ask("INFO", "persistence"); err == nil && !strings.Contains(info, "loading:1") {
				return true
			}
		}
		<-time.After(5 * time.Millisecond)
	}
	s.Stop()
	return false
}

// Addr returns host:port.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// Socket returns the path of its Unix socket.
func (s *Server) Socket() string { return s.socket }

// URL returns what to open the server with.
func (s *Server) URL() string { return "redis://" + s.Addr() + "/0" }

// Stop kills the server, as a power failure would. It is idempotent.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.done
	s.cmd = nil
}

// Restart kills the server if it runs and starts it again at the same port, with
// or without what it had.
func (s *Server) Restart(keepData bool) {
	s.t.Helper()
	if keepData && s.cmd != nil {
		// With everysec Redis answers before it has written to its file, by up to two
		// seconds while the disk is busy. With always the answer comes after the write.
		s.Do("CONFIG", "SET", "appendfsync", "always")
	}
	s.Stop()
	if !keepData {
		if err := os.RemoveAll(filepath.Join(s.dir, "appendonlydir")); err != nil {
			s.t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		if s.begin() {
			return
		}
	}
	s.t.Fatal("redis-server does not start again at its port")
}

// Flush forgets all that the server has.
func (s *Server) Flush() {
	s.t.Helper()
	s.Do("FLUSHALL")
}

// Do sends a command and returns the answer as text.
func (s *Server) Do(command ...string) string {
	s.t.Helper()
	out, err := s.ask(command...)
	if err != nil {
		s.t.Fatalf("%s: %v", strings.Join(command, " "), err)
	}
	return out
}

// until waits until an answer has a text in it.
func (s *Server) until(want string, command ...string) {
	s.t.Helper()
	last := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		out, err := s.ask(command...)
		if err == nil && strings.Contains(out, want) {
			return
		}
		last = fmt.Sprint(out, err)
	}
	s.t.Fatalf("%s does not say %q, but: %s", strings.Join(command, " "), want, last)
}
