//go:build linux

package linuxtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/testkit/program"
)

// childEnv carries a Child to the process that plays it.
const childEnv = "COVE_LINUXTEST_CHILD"

// Descriptors of a child: what comes after them is Child.Files.
const (
	counterFD = 3
	// FirstFile is the descriptor of the first of Child.Files.
	FirstFile = 4
)

// Child is one function of a test binary that runs in a process of its own,
// where it can change namespaces and lock itself up.
type Child struct {
	Name  string   // the key in the map that [Main] got
	Args  []string // what the function gets
	User  bool     // as an ordinary user, also where the tests run as root
	Clone uintptr  // CLONE_NEW flags; the user of a new user namespace is its root
	Files []*os.File
	Stdin io.Reader
	Env   []string
}

// Func is what a child runs; its error ends the process with 1.
type Func func(args []string) error

// Main runs the tests of a package, or the child that the process was started
// for. It does not return.
func Main(m *testing.M, children map[string]Func) {
	text, ok := os.LookupEnv(childEnv)
	if !ok {
		startLasting() // now, so that it is no leak of a test
		program.Main(m)
	}
	// Not on this thread: it writes the coverage at the end, and must not be
	// locked up by then.
	played := make(chan error)
	go func() { played <- play(text, children) }()
	err := <-played
	code := 0
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code = max(exit.ExitCode(), 1)
		}
		if _, ok := errors.AsType[*linux.Missing](err); ok {
			code = lackingExit
		}
	}
	exit(code)
}

func play(text string, children map[string]Func) error {
	if err := os.Unsetenv(childEnv); err != nil {
		return err
	}
	var c Child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return fmt.Errorf("child: %w", err)
	}
	if c.User {
		return relay(c)
	}
	f, ok := children[c.Name]
	if !ok {
		return fmt.Errorf("child: no function %q", c.Name)
	}
	return f(c.Args)
}

// relay starts c once more, from a process that is an ordinary user already: a
// namespace made by root for somebody else has other rights than his own.
func relay(c Child) error {
	c.User = false
	cmd := command(c)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	for fd := counterFD; ; fd++ {
		if _, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil || fd > FirstFile+8 {
			break
		}
		cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(fd), "inherited"))
	}
	if err := cmd.Start(); err != nil {
		return lacking(c, err)
	}
	return cmd.Wait()
}

// lackingExit is the exit code of a relay on a host that cannot make the
// namespaces of a child.
const lackingExit = 77

// lacking says why a child cannot be started.
func lacking(c Child, err error) error {
	if _, noProc := os.Stat("/proc/self/exe"); noProc != nil {
		return &linux.Missing{Feature: "processes of tests", Why: "there is no /proc", Remedy: "mount /proc", Err: err}
	}
	if c.User && os.Getuid() == 0 {
		return &linux.Missing{Feature: "an ordinary user", Why: "root cannot become one here", Remedy: "give the container's user namespace more than one user", Err: err}
	}
	if c.Clone != 0 {
		return &linux.Missing{Feature: "namespaces", Why: "this user cannot make them here", Remedy: "run the tests outside of the container or chroot, or let it make namespaces", Err: err}
	}
	return err
}

// Env returns the environment in which this executable plays a child that the
// caller starts himself.
func Env(c Child) []string {
	text, err := json.Marshal(Child{Name: c.Name, Args: c.Args, User: c.User, Clone: c.Clone})
	if err != nil {
		panic(err) //nolint:forbidigo // strings and numbers always encode
	}
	return append(c.Env, childEnv+"="+string(text), "PATH="+os.Getenv("PATH"))
}

func command(c Child) *exec.Cmd {
	// The path of a test binary is closed to other users; this link is not.
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // tests end their children themselves
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if c.User && os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	if c.User && c.Clone == 0 {
		c.User = false // there is nothing to relay
	}
	cmd.Env = Env(c)
	if !c.User {
		cmd.SysProcAttr.Cloneflags = c.Clone
		if c.Clone&syscall.CLONE_NEWUSER != 0 {
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		}
	}
	return cmd
}

// nobody is the ordinary user that root's tests become.
const nobody = 65534

// Result is how a child ended.
type Result struct {
	Stdout, Stderr string
	State          *os.ProcessState
}

// Signal is what killed the child; 0 if nothing did.
func (r Result) Signal() syscall.Signal {
	if s, ok := r.State.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return s.Signal()
	}
	return 0
}

// Run plays a child to its end, however it ends.
func Run(t testing.TB, c Child) Result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := Start(t, c, &out, &errs)
	if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
		t.Fatalf("child %s: %v", c.Name, err)
	}
	if cmd.ProcessState.ExitCode() == lackingExit {
		Need(t, errors.New(strings.TrimSpace(errs.String())))
	}
	return Result{out.String(), errs.String(), cmd.ProcessState}
}

// Start starts a child; the caller waits for it. A child that the test forgets
// is killed when the test ends.
func Start(t testing.TB, c Child, stdout, stderr io.Writer) *exec.Cmd {
	t.Helper()
	cmd := command(c)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, stdout, stderr
	counters := counterDir(t)
	cmd.ExtraFiles = append([]*os.File{counters}, c.Files...)
	var err error
	Lasting(func() { err = cmd.Start() })
	if err != nil {
		_ = counters.Close()
		if err = lacking(c, err); errors.Is(err, errors.ErrUnsupported) {
			Need(t, err)
		}
		t.Fatalf("child %s: %v", c.Name, err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		collect(t, counters)
	})
	return cmd
}

// OK plays a child that must succeed, and returns what it wrote.
func OK(t testing.TB, c Child) string {
	t.Helper()
	r := Run(t, c)
	if !r.State.Success() {
		t.Fatalf("child %s: %s\n%s%s", c.Name, r.State, r.Stdout, r.Stderr)
	}
	return strings.TrimSuffix(r.Stdout, "\n")
}
