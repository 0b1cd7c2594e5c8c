package sdk_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove/internal/testkit/program"
)

// startTime is how long a server may take to be ready. What is slow is a loaded machine.
const startTime = 2 * time.Minute

func TestMain(m *testing.M) { program.Main(m) }

// server is a running cove serve.
type server struct {
	URL     string `json:"url"`
	KeyFile string `json:"key_file"`
	key     string
	home    string
	program string
	given   []string // the environment, which is the same every time that it starts
	cmd     *exec.Cmd
	log     bytes.Buffer
}

// env is how an SDK is told of the server.
func (s *server) env() []string {
	return []string{"COVE_URL=" + s.URL, "COVE_API_KEY=" + s.key}
}

// serve runs a server of its own, with a provider and more settings, until the test ends.
func serve(t *testing.T, provider string, settings ...string) *server {
	t.Helper()
	s := &server{home: filepath.Join(shortDir(t), "home"), program: program.Cove(t)}
	s.given = append(plain(), append(settings, "COVE_HOME="+s.home, "SANDBOX_PROVIDER="+provider, "POOL_SIZE=0", "MSB_MAX_TOTAL_MEMORY_MB=67108864", "COVE_LOG_LEVEL=error")...)
	t.Cleanup(func() {
		s.end(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the server's log:\n%.20000s", s.log.String())
		}
	})
	if err := s.start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts the server at an address, and returns when it listens.
func (s *server) start(address string) error {
	s.cmd = exec.Command(s.program, "serve", "--json", "--addr", address)
	s.cmd.Env, s.cmd.Stderr = s.given, &s.log
	s.cmd.WaitDelay = time.Minute
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	slow := time.AfterFunc(startTime, func() { _ = s.cmd.Process.Kill() })
	defer slow.Stop()
	if err := json.NewDecoder(io.LimitReader(out, 64<<10)).Decode(s); err != nil {
		return fmt.Errorf("the server did not start: %w\n%s", err, s.log.String())
	}
	key, err := os.ReadFile(s.KeyFile)
	s.key = strings.TrimSpace(string(key))
	return err
}

// end ends the server, as a crash does with SIGKILL and as an operator with SIGTERM.
func (s *server) end(how syscall.Signal) {
	if s.cmd.Process == nil {
		return // it never began
	}
	_ = s.cmd.Process.Signal(how) // it may have ended
	_ = s.cmd.Wait()              // the signal is its end
}

// restart ends the server and starts it again where it was.
func (s *server) restart(how string) error {
	signals := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM}
	if signals[how] == 0 {
		return fmt.Errorf("%q is no way to end a server", how)
	}
	s.end(signals[how])
	return s.start(strings.TrimPrefix(s.URL, "http://"))
}

// plain is the environment without settings of Cove's: those of the tests count.
func plain() []string {
	var env []string
	for _, one := range os.Environ() {
		if name, _, _ := strings.Cut(one, "="); !ours(name) {
			env = append(env, one)
		}
	}
	return env
}

func ours(name string) bool {
	for _, prefix := range []string{"COVE_", "SANDBOX_", "MSB_", "E2B_", "PYTHON", "PIP_"} {
		if strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, "COVE_TEST_") {
			return prefix != "PIP_"
		}
	}
	return false
}

// shortDir is a directory for the test whose path leaves room for that of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cove") //nolint:usetesting // the path of a test's own is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
