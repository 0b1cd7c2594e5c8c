package initproc_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/capability"
	"github.com/cove-sandbox/cove/internal/linux/initproc"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/mount"
	"github.com/cove-sandbox/cove/internal/linux/userns"
)

func TestMain(m *testing.M) {
	linuxtest.Main(m, map[string]linuxtest.Func{
		"inside":  inside,
		"whole":   startWhole,
		"old":     startOld,
		"files":   startFiles,
		"refused": startRefused,
		"many":    startMany,
		"end":     startAndEnd,
		"probe":   probeFiltered,
		"tests":   linuxtest.Tests,
	})
}

// inner is who the programs of these tests are to themselves, and outer who
// root makes them on the host.
const (
	inner = 1234
	outer = 234_567
)

// play runs a child that may start processes: root as it is, an ordinary user
// as the root of a user namespace.
func play(t *testing.T, name string, user bool, args ...string) string {
	t.Helper()
	child := linuxtest.Child{Name: name, User: user, Args: append([]string{"root"}, args...)}
	if user {
		r := userns.Probe()
		linuxtest.Need(t, errors.Join(r.Create, r.Map, r.Mount))
		child.Args[0], child.Clone = "user", unix.CLONE_NEWUSER
	}
	return linuxtest.OK(t, child)
}

// command is a program for a child that play plays. The descriptors stay open.
func command(who string, program int, argv ...string) (*initproc.Command, error) {
	proc, err := unix.Open("/proc", unix.O_PATH|unix.O_CLOEXEC, 0)
	return &initproc.Command{
		Executable: program, Argv: argv, Dir: "/", Group: -1, Ruleset: -1,
		Inside: inner, Outside: map[string]uint32{"root": outer, "user": 0}[who], Become: who == "root", ProcDir: proc,
	}, err
}

// self is a descriptor of this executable, and the environment in which it is
// the program inside.
func self(args ...string) (fd int, env []string, err error) {
	fd, err = unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	return fd, linuxtest.Env(linuxtest.Child{Name: "inside", Args: args, Env: []string{"MARK=yes"}}), err
}

// apart runs f on a thread with mounts of its own, which is thrown away.
func apart(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() { // it would stay
			done <- apart(f)
			runtime.UnlockOSThread()
			return
		}
		err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
		if err == nil {
			err = mount.Private("/")
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// start is Start, apart.
func start(c *initproc.Command) (p initproc.Process, err error) {
	err = apart(func() (err error) {
		p, err = initproc.Start(c)
		return err
	})
	return p, err
}

// state is what the program inside finds.
type state struct {
	PID, Parent, User, Group int
	Groups                   []int
	Privileges               string // what is left of them
	Status                   map[string]string
	Unshare, WriteNull       string // how these go
	Limit                    unix.Rlimit
	Open                     map[string]string // identities of files by descriptor
	Dir                      string
	Args, Env                []string
	Processes                []string
	ControlGroups            string
}

// inside is the program that is started: when it hears a byte on descriptor 0, it
// reports to descriptor 1, and waits for the end.
func inside(args []string) error {
	runtime.LockOSThread()
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	s := state{PID: os.Getpid(), Parent: os.Getppid(), User: os.Getuid(), Group: os.Getgid(), Args: args, Env: os.Environ()}
	s.Groups, _ = os.Getgroups()
	s.Dir, _ = os.Getwd()
	if err := capability.Check(); err != nil {
		s.Privileges = err.Error()
	}
	s.Status = status()
	s.Open = openFiles()
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &s.Limit); err != nil {
		return err
	}
	s.Processes, _ = filepath.Glob("/proc/[0-9]*")
	text, _ := os.ReadFile("/proc/self/cgroup")
	s.ControlGroups = string(text)
	s.Unshare = said(unix.Unshare(unix.CLONE_FS))
	fd, err := unix.Open("/dev/null", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	s.WriteNull = said(err)
	_ = unix.Close(fd)
	if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func said(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}

// status is some of what the kernel says about this thread.
func status() map[string]string {
	found := map[string]string{}
	text, _ := os.ReadFile("/proc/thread-self/status")
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		if slices.Contains([]string{"NoNewPrivs", "Seccomp", "SigBlk", "CapBnd"}, name) {
			found[name] = value
		}
	}
	return found
}

// openFiles says which file is behind each descriptor that is not the runtime's
// own.
func openFiles() map[string]string {
	found := map[string]string{}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || strings.Contains(to, "anon_inode:[event") || strings.HasPrefix(to, "/sys/fs/cgroup/") {
			continue
		}
		var fd int
		_, _ = fmt.Sscan(e.Name(), &fd)
		found[e.Name()] = identity(fd)
	}
	return found
}

func identity(fd int) string {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err.Error()
	}
	return fmt.Sprint(st.Dev, ":", st.Ino)
}

// holdings is what a child has of descriptors and children of its own.
func holdings() string {
	fds, _ := os.ReadDir("/proc/self/fd")
	n := 0
	for _, e := range fds {
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		if !strings.Contains(to, "anon_inode:[event") && !strings.HasPrefix(to, "/sys/fs/cgroup/") {
			n++
		}
	}
	var children []string
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		children = append(children, strings.Fields(string(text))...)
	}
	return fmt.Sprint(n, " descriptors, children ", children)
}

// hear lets the program inside report, which must be when it has its /proc.
func hear(hold, out *os.File) (s state, err error) {
	if _, err := hold.Write([]byte{1}); err != nil {
		return s, err
	}
	err = json.NewDecoder(out).Decode(&s)
	return s, err
}

// reap waits for a process that ends by itself, and returns its exit code.
func reap(p initproc.Process) (int, error) {
	defer func() { _ = unix.Close(p.FD) }()
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(p.PID, &ws, 0, nil)
		if !errors.Is(err, unix.EINTR) {
			return ws.ExitStatus(), err
		}
	}
}

func print(v any) error {
	return json.NewEncoder(os.Stdout).Encode(v)
}

func read[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}
