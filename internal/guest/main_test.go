//go:build linux

package guest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/guest/agent"
	"github.com/cove-sandbox/cove/internal/keeper"
	"github.com/cove-sandbox/cove/internal/linux/forkexec"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/netns"
	"github.com/cove-sandbox/cove/internal/testkit/program"
)

func TestMain(m *testing.M) {
	if os.Args[0] == agent.Name {
		os.Exit(agent.Main(agent.DefaultFD))
	}
	if os.Args[0] == keeper.Name {
		os.Exit(keeper.Main(keeper.DefaultFD, os.Args[1]))
	}
	linuxtest.Main(m, map[string]linuxtest.Func{"agent": playAgent, "door": playDoor, "host": playHost})
}

// sandboxUser is who programs are in the namespaces that root makes.
const sandboxUser = 1000

// stage is where an agent plays, told to the child by its arguments.
type stage struct {
	Top    string // becomes the top of a small tree of its own; "" means no tree
	User   bool   // somebody ordinary inside, where root makes the namespaces
	Locked bool   // behind all walls of a sandbox
	Lean   bool   // as the executable that is the second file
	NoProc bool   // without /proc
	Listen bool   // for doors, in a network of its own
	Names  string // where the name server is, in a file
	Memory string // what is in use, in a file
}

// playAgent is the agent, after the walls are up.
func playAgent(args []string) error {
	var s stage
	if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
		return err
	}
	// A wall is put around one thread, which becomes the agent.
	runtime.LockOSThread()
	if s.Locked || s.Listen {
		if err := netns.Loopback(); err != nil {
			return err
		}
	}
	if s.Names != "" {
		// As whoever makes the sandbox lets its user have all ports.
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0o600); err != nil {
			return err
		}
	}
	if s.Top != "" {
		if err := enter(s); err != nil {
			return err
		}
	}
	if s.Lean {
		return becomeLean(s.Locked)
	}
	if s.Listen {
		// As it is for who was executed as his user, and did not become him.
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
			return err
		}
		if code := agent.Listen(); code != 0 {
			return fmt.Errorf("agent ended with %d", code)
		}
		return nil
	}
	if code := agent.Main(linuxtest.FirstFile); code != 0 {
		return fmt.Errorf("agent ended with %d", code)
	}
	return nil
}

// becomeLean turns this process into the lean agent.
func becomeLean(locked bool) error {
	const image = linuxtest.FirstFile + 1
	if err := unix.Dup3(linuxtest.FirstFile, agent.DefaultFD, 0); err != nil {
		return err
	}
	unix.CloseOnExec(linuxtest.FirstFile)
	unix.CloseOnExec(image)
	if locked {
		if err := lockUp(); err != nil {
			return err
		}
	}
	err := unix.Exec(fmt.Sprintf("/proc/self/fd/%d", image), []string{agent.Name}, agent.Env())
	return fmt.Errorf("exec: %w", err)
}

// enter makes top a root with the host's programs, and a workspace of its own.
func enter(s stage) error {
	top, user := s.Top, s.User
	steps := []func() error{
		func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") },
		func() error { return unix.Mount("tmpfs", top, "tmpfs", 0, "mode=755") },
	}
	for _, dir := range []string{"usr", "bin", "sbin", "lib", "lib64", "etc", "dev"} {
		if _, err := os.Stat("/" + dir); err != nil {
			continue
		}
		steps = append(steps, func() error { return os.Mkdir(filepath.Join(top, dir), 0o755) },
			func() error { return unix.Mount("/"+dir, filepath.Join(top, dir), "", unix.MS_BIND|unix.MS_REC, "") })
	}
	if s.Names != "" {
		steps = append(steps, func() error {
			return unix.Mount(s.Names, filepath.Join(top, "etc/resolv.conf"), "", unix.MS_BIND, "")
		})
	}
	owned := func(dir string) {
		full := filepath.Join(top, dir)
		steps = append(steps, func() error { return os.MkdirAll(full, 0o777) }, func() error { return os.Chmod(full, 0o777) })
		if user {
			steps = append(steps, func() error { return os.Chown(full, sandboxUser, sandboxUser) })
		}
	}
	owned("workspace")
	owned("tmp")
	owned("home")
	steps = append(steps,
		func() error { return os.Mkdir(filepath.Join(top, "proc"), 0o755) },
		func() error {
			if s.NoProc {
				return nil
			}
			return unix.Mount("proc", filepath.Join(top, "proc"), "proc", 0, "")
		},
		func() error {
			if s.Memory == "" {
				return nil
			}
			return unix.Mount(s.Memory, filepath.Join(top, "proc/meminfo"), "", unix.MS_BIND, "")
		},
		func() error {
			return unix.Mount("devpts", filepath.Join(top, "dev/pts"), "devpts", 0, "newinstance,ptmxmode=0666")
		},
		func() error {
			return unix.Mount(filepath.Join(top, "dev/pts/ptmx"), filepath.Join(top, "dev/ptmx"), "", unix.MS_BIND, "")
		},
		func() error { return unix.Chroot(top) },
		func() error { return os.Chdir("/workspace") },
	)
	if user {
		steps = append(steps, func() error { return syscall.Setgroups(nil) }, func() error { return syscall.Setresgid(sandboxUser, sandboxUser, sandboxUser) },
			func() error { return syscall.Setresuid(sandboxUser, sandboxUser, sandboxUser) })
	}
	for i, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// place is one way to run an agent.
type place struct {
	framed     bool
	namespaces bool
	user       bool // as root only: become an ordinary user inside
	lean       bool // as the executable of its own
	locked     bool // lean, in namespaces, behind all walls
	noProc     bool // in namespaces, without /proc
}

func places() map[string]place {
	return map[string]place{
		"descriptors":             {},
		"framed":                  {framed: true},
		"descriptors, namespaces": {namespaces: true},
		"framed, namespaces":      {framed: true, namespaces: true},
	}
}

// guestAt is a connected agent.
type guestAt struct {
	*guest.Conn

	dir string // of the workspace, as the agent sees it
	cmd *exec.Cmd
}

// connect starts an agent, which ends with the test.
func connect(t testing.TB, p place, change ...func(*guest.Options)) *guestAt {
	t.Helper()
	fd, opts, cmd, errs := launch(t, p, change...)
	c, err := guest.Connect(t.Context(), transport(t, fd, p.framed), opts)
	if err != nil {
		_ = cmd.Wait()
		t.Fatalf("connect: %v\n%s", err, errs.String())
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = cmd.Wait()
		if errs.Len() > 0 {
			t.Errorf("the agent said: %s", errs.String())
		}
	})
	return &guestAt{c, opts.Dir, cmd}
}

func transport(t testing.TB, fd int, framed bool) guest.Transport {
	t.Helper()
	if framed {
		_ = unix.SetNonblock(fd, true)
		return guest.Framed(os.NewFile(uintptr(fd), "host"))
	}
	tr, err := guest.Descriptors(fd)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// launch starts an agent, and returns the host's end of its link.
func launch(t testing.TB, p place, change ...func(*guest.Options)) (int, guest.Options, *exec.Cmd, *strings.Builder) {
	t.Helper()
	linuxtest.Need(t, forkexec.Probe())
	opts := guest.Options{Dir: t.TempDir(), Env: map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8"}}
	child := linuxtest.Child{Name: "agent"}
	s := stage{NoProc: p.noProc, User: p.user, Lean: p.lean || p.locked, Locked: p.locked}
	if p.namespaces || p.locked {
		linuxtest.Need(t, canEnter(p.user))
		s.Top = t.TempDir()
		child.Clone = unix.CLONE_NEWPID | unix.CLONE_NEWNS
		if p.locked {
			child.Clone |= unix.CLONE_NEWNET
		}
		if !p.user {
			child.Clone |= unix.CLONE_NEWUSER
		}
		opts.Dir, opts.Env["HOME"] = cove.WorkspacePath, "/home"
	}
	for _, c := range change {
		c(&opts)
	}
	kind := unix.SOCK_SEQPACKET
	if p.framed {
		kind = unix.SOCK_STREAM
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "agent")
	child.Files = []*os.File{theirs}
	if s.Lean {
		child.Files = append(child.Files, leanFile(t))
	}
	args, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	child.Args = []string{string(args)}
	errs := &strings.Builder{}
	cmd := linuxtest.Start(t, child, nil, errs)
	theirs.Close()
	return fds[0], opts, cmd, errs
}

// lean is the agent as it is shipped, kept in memory.
var lean struct {
	sync.Once

	path string
	err  error
}

func leanAgent(t testing.TB) string {
	t.Helper()
	file := program.Agent(t)
	lean.Do(func() {
		image, err := os.ReadFile(file)
		if err != nil {
			lean.err = err
			return
		}
		lean.path, lean.err = guest.Load(image)
	})
	if lean.err != nil {
		t.Fatal(lean.err)
	}
	return lean.path
}

func leanFile(t testing.TB) *os.File {
	t.Helper()
	f, err := os.Open(leanAgent(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// canEnter reports why an agent cannot get namespaces and a small tree here, as
// its own user or with a user namespace.
func canEnter(user bool) error {
	if user {
		return enterAsRoot()
	}
	return enterAsUser()
}

var (
	enterAsRoot = sync.OnceValue(func() error { return tryUnshare("-mpf") })
	enterAsUser = sync.OnceValue(func() error { return tryUnshare("-Urmpf") })
)

func tryUnshare(how string) error {
	script := "test -d /dev/pts && test -e /dev/ptmx && mount -t tmpfs none /tmp && mount -t devpts -o newinstance none /dev/pts && chroot / true"
	if how == "-mpf" {
		script += fmt.Sprintf(" && chown %d /tmp", sandboxUser)
	}
	if out, err := exec.Command("unshare", how, "--mount-proc", "sh", "-c", script).CombinedOutput(); err != nil {
		return fmt.Errorf("namespaces with mounts of their own: unshare %s: %w: %s", how, err, out)
	}
	return nil
}

// needTerminal skips a test where the kernel gives no terminals.
func needTerminal(t testing.TB) {
	t.Helper()
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err == nil {
		f.Close()
	}
	linuxtest.Need(t, err)
}

// startExecutable runs an agent as providers do.
func startExecutable(t *testing.T, path string) *guest.Conn {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "agent")
	cmd := exec.Command(path)
	cmd.Args, cmd.Env, cmd.ExtraFiles, cmd.Stderr = []string{agent.Name}, agent.Env(), []*os.File{theirs}, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	tr, err := guest.Descriptors(fds[0])
	if err != nil {
		t.Fatal(err)
	}
	c, err := guest.Connect(t.Context(), tr, guest.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = cmd.Wait()
	})
	return c
}
