//go:build linux

package guest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/guest/agent"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

func TestMain(m *testing.M) {
	if os.Args[0] == agent.Name {
		os.Exit(agent.Main(agent.DefaultFD, nil))
	}
	linuxtest.Main(m, map[string]linuxtest.Func{"agent": playAgent})
}

// sandboxUser is who programs are in the namespaces that root makes.
const sandboxUser = 1000

// playAgent is the agent. With a directory as its argument it makes that the
// top of a small tree of its own first.
func playAgent(args []string) error {
	if len(args) > 0 {
		if err := enter(args[0]); err != nil {
			return err
		}
	}
	setup := func(body []byte, fds []int) error {
		if string(body) == "fail" {
			return fmt.Errorf("mount %d: %w", len(fds), syscall.EPERM)
		}
		return nil
	}
	if code := agent.Main(linuxtest.FirstFile, setup); code != 0 {
		return fmt.Errorf("agent ended with %d", code)
	}
	return nil
}

// enter makes top a root with the host's programs, and a workspace of its own.
func enter(top string) error {
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
	owned := func(dir string) {
		full := filepath.Join(top, dir)
		steps = append(steps, func() error { return os.MkdirAll(full, 0o777) }, func() error { return os.Chmod(full, 0o777) })
		if os.Getuid() == 0 && os.Getenv("COVE_TEST_USER") != "" {
			steps = append(steps, func() error { return os.Chown(full, sandboxUser, sandboxUser) })
		}
	}
	owned("workspace")
	owned("tmp")
	owned("home")
	steps = append(steps,
		func() error { return os.Mkdir(filepath.Join(top, "proc"), 0o755) },
		func() error { return unix.Mount("proc", filepath.Join(top, "proc"), "proc", 0, "") },
		func() error {
			return unix.Mount("devpts", filepath.Join(top, "dev/pts"), "devpts", 0, "newinstance,ptmxmode=0666")
		},
		func() error {
			return unix.Mount(filepath.Join(top, "dev/pts/ptmx"), filepath.Join(top, "dev/ptmx"), "", unix.MS_BIND, "")
		},
		func() error { return unix.Chroot(top) },
		func() error { return os.Chdir("/workspace") },
	)
	if os.Getenv("COVE_TEST_USER") != "" {
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
	opts := guest.Options{Dir: t.TempDir(), Env: map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8"}}
	child := linuxtest.Child{Name: "agent"}
	if p.namespaces {
		linuxtest.Need(t, unshareWorks())
		child.Args = []string{t.TempDir()}
		child.Clone = unix.CLONE_NEWPID | unix.CLONE_NEWNS
		if p.user {
			child.Env = []string{"COVE_TEST_USER=1"}
		} else {
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
	var errs strings.Builder
	cmd := linuxtest.Start(t, child, nil, &errs)
	theirs.Close()
	var tr guest.Transport
	if p.framed {
		_ = unix.SetNonblock(fds[0], true)
		tr = guest.Framed(os.NewFile(uintptr(fds[0]), "host"))
	} else if tr, err = guest.Descriptors(fds[0]); err != nil {
		t.Fatal(err)
	}
	c, err := guest.Connect(t.Context(), tr, opts)
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

func unshareWorks() error {
	return exec.Command("unshare", "-Urmpf", "--mount-proc", "true").Run()
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
	cmd.Args, cmd.ExtraFiles, cmd.Stderr = []string{agent.Name}, []*os.File{theirs}, os.Stderr
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
