package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/provider/local"
)

func TestMain(m *testing.M) {
	local.Main()
	testscript.Main(tests{m}, map[string]func(){"cove": main})
}

// tests removes what was built for the tests when they have run.
type tests struct{ *testing.M }

func (m tests) Run() int {
	code := m.M.Run()
	if err := program.Remove(); err != nil {
		return 1
	}
	return code
}

// TestScripts runs testdata/script, each file with a COVE_HOME of its own and
// the fake provider. Servers that a script starts, or that are started on its
// behalf, are stopped by their pid at its end.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("COVE_HOME", home)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("SANDBOX_PROVIDER", "fake")
			env.Setenv("POOL_SIZE", "0")
			// Should this process be killed, what it started ends by itself soon.
			env.Setenv("COVE_DAEMON_IDLE", "60")
			env.Setenv("MSB_SESSION_TIMEOUT", "120")
			env.Setenv("EVIL", "\x1b[2Jevil")
			env.Setenv("COVE_DUCKDB", os.Getenv("COVE_TEST_DUCKDB"))
			// Commands count the statements they reach where the tests do.
			if dir := flag.Lookup("test.gocoverdir").Value.String(); dir != "" {
				env.Setenv("GOCOVERDIR", dir)
			}
			env.Defer(func() { endAll(t, env.WorkDir) })
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			if cond == "local" {
				return localReady()
			}
			if cond == "duckdb" {
				return duckdbReady()
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"capture": capture,
			"listen":  listen,
			"signal":  signalServer,
			"await":   await,
			"served":  served,
			"code":    exitCode,
			"mount":   mount,
			"chown":   chown,
			"tamper":  tamper,
			"url":     serverURL,
			"crowd":   crowd,
		},
	})
}

// holder is what the lock file of a COVE_HOME says.
type holder struct {
	PID     int    `json:"pid"`
	Address string `json:"address"`
}

// serving returns who serves a COVE_HOME now: the file alone may be old, the
// lock is not.
func serving(home string) (holder, bool) {
	f, err := os.Open(filepath.Join(home, "cove.lock"))
	if err != nil {
		return holder{}, false
	}
	defer func() { _ = f.Close() }()
	if unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != unix.EWOULDBLOCK {
		return holder{}, false
	}
	var h holder
	err = json.NewDecoder(f).Decode(&h)
	return h, err == nil && h.PID > 0
}

// endAll stops every server of a script's COVE_HOMEs.
func endAll(t *testing.T, dir string) {
	locks, err := filepath.Glob(filepath.Join(dir, "*", "cove.lock"))
	if err != nil {
		t.Error(err)
	}
	for _, l := range locks {
		home := filepath.Dir(l)
		h, ok := serving(home)
		if !ok {
			continue
		}
		_ = syscall.Kill(h.PID, syscall.SIGTERM)
		if !eventually(30*time.Second, func() bool { _, ok := serving(home); return !ok }) {
			_ = syscall.Kill(h.PID, syscall.SIGKILL)
			t.Errorf("process %d did not end by itself", h.PID)
		}
	}
}

// eventually looks at something that gives no sign.
func eventually(within time.Duration, holds func() bool) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if holds() {
			return true
		}
		select {
		case <-deadline.C:
			return holds()
		case <-tick.C:
		}
	}
}

// capture NAME: the trimmed standard output of the last command as a variable.
func capture(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// signal NAME: to the server of COVE_HOME.
func signalServer(ts *testscript.TestScript, _ bool, args []string) {
	h, ok := serving(ts.Getenv("COVE_HOME"))
	if !ok {
		ts.Fatalf("nobody serves %s", ts.Getenv("COVE_HOME"))
	}
	sig := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM}[args[0]]
	if sig == 0 {
		ts.Fatalf("unknown signal %s", args[0])
	}
	ts.Check(syscall.Kill(h.PID, sig))
	if !eventually(30*time.Second, func() bool { _, ok := serving(ts.Getenv("COVE_HOME")); return !ok }) {
		ts.Fatalf("process %d is still there", h.PID)
	}
}

// await: until somebody serves COVE_HOME; ! await: until nobody does.
func await(ts *testscript.TestScript, neg bool, _ []string) {
	home := ts.Getenv("COVE_HOME")
	up := func() bool {
		_, ok := serving(home)
		_, err := os.Stat(filepath.Join(home, "cove.sock"))
		return ok && err == nil
	}
	if !eventually(30*time.Second, func() bool { return up() != neg }) {
		ts.Fatalf("served: %v", !neg)
	}
}

// served NAME: the pid of the server of COVE_HOME as a variable.
func served(ts *testscript.TestScript, neg bool, args []string) {
	h, ok := serving(ts.Getenv("COVE_HOME"))
	if ok == neg {
		ts.Fatalf("served: %v", ok)
	}
	if ok {
		ts.Setenv(args[0], strconv.Itoa(h.PID))
	}
}

// url NAME: the address of the server of COVE_HOME as a variable.
func serverURL(ts *testscript.TestScript, _ bool, args []string) {
	h, ok := serving(ts.Getenv("COVE_HOME"))
	if !ok {
		ts.Fatalf("nobody serves %s", ts.Getenv("COVE_HOME"))
	}
	ts.Setenv(args[0], h.Address)
}

// code N COMMAND…: runs a command and demands its exit code.
func exitCode(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if m := regexp.MustCompile(`exit status (\d+)`).FindStringSubmatch(fmt.Sprint(err)); m != nil {
		got = m[1]
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// localReady says whether the provider local can make sandboxes here; where
// COVE_REQUIRE names it, it must.
func localReady() (bool, error) {
	dir, err := os.MkdirTemp("", "cove-script-*")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p, err := local.New(local.Config{Dir: dir})
	if err != nil {
		return false, err
	}
	defer func() { _ = p.Close() }()
	caps, err := p.Probe(context.Background())
	if err == nil && !caps.Ready && slices.Contains(strings.Split(os.Getenv("COVE_REQUIRE"), ","), "local") {
		err = fmt.Errorf("provider local is not ready: %s (%s)", caps.Why, caps.Remedy)
	}
	return caps.Ready, err
}

// needLocal goes on where the provider makes sandboxes.
func needLocal(t *testing.T) {
	t.Helper()
	switch ready, err := localReady(); {
	case err != nil:
		t.Fatal(err)
	case !ready:
		t.Skip("the provider local cannot make sandboxes here; cove doctor says why")
	}
}

// listen NAME: something on the host's loopback that answers, for the time of
// the script; its port goes into a variable.
func listen(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	ts.Defer(func() { _ = l.Close() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	ts.Check(err)
	ts.Setenv(args[0], port)
}

// mount DIR OPTIONS: a small file system for the time of the script, ro for a
// read-only one.
func mount(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	flags, data := uintptr(0), args[1]
	if args[1] == "ro" {
		flags, data = syscall.MS_RDONLY, "mode=0700"
	}
	ts.Check(syscall.Mount("tmpfs", dir, "tmpfs", flags, data))
	ts.Defer(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// chown UID PATH.
func chown(ts *testscript.TestScript, _ bool, args []string) {
	uid, err := strconv.Atoi(args[0])
	ts.Check(err)
	ts.Check(os.Chown(ts.MkAbs(args[1]), uid, uid))
}

// tamper FILE OLD NEW: replaces the first OLD in a file, length for length.
func tamper(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	if len(args[1]) != len(args[2]) || !bytes.Contains(data, []byte(args[1])) {
		ts.Fatalf("%q is not in the file, or %q is of another length", args[1], args[2])
	}
	ts.Check(os.WriteFile(path, bytes.Replace(data, []byte(args[1]), []byte(args[2]), 1), 0o600))
}

// crowd N COMMAND…: runs a command N times at once; all must succeed.
func crowd(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	line := fmt.Sprintf(`for i in $(seq %d); do "$@" & done; bad=0; for j in $(jobs -p); do wait $j || bad=1; done; exit $bad`, n)
	ts.Check(ts.Exec("bash", append([]string{"-c", line, "crowd"}, args[1:]...)...))
}

// duckdbReady reports whether there is an executable of DuckDB; where there must be
// one, none is an error.
func duckdbReady() (bool, error) {
	if os.Getenv("COVE_TEST_DUCKDB") != "" {
		return true, nil
	}
	if slices.Contains(strings.Split(os.Getenv("COVE_REQUIRE"), ","), "duckdb") {
		return false, errors.New("COVE_REQUIRE names duckdb, and COVE_TEST_DUCKDB no executable; run make test")
	}
	return false, nil
}
