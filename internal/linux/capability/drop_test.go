package capability_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/capability"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

func TestMain(m *testing.M) {
	linuxtest.Main(m, map[string]linuxtest.Func{"thread": dropThread, "weak": dropWeak, "partial": dropPartly})
}

// dropThread locks one thread up and lets a program tell what it finds.
func dropThread([]string) error {
	runtime.LockOSThread()
	if err := capability.Check(); err == nil {
		return errors.New("nothing is left before the drop")
	}
	if err := capability.Drop(); err != nil {
		return err
	}
	if err := capability.Check(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte("x")); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("sethostname: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, 0, 0, 0, 0); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("securebits: %w", err)
	}
	grep, err := exec.LookPath("grep")
	if err != nil {
		return err
	}
	return syscall.Exec(grep, []string{"grep", "-E", "^(Cap|NoNewPrivs)", "/proc/self/status"}, nil)
}

func dropWeak([]string) error {
	runtime.LockOSThread()
	if err := capability.Drop(); !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "securebits") {
		return fmt.Errorf("without privileges: %w", err)
	}
	if err := capability.NoNewPrivs(); err != nil {
		return err
	}
	return nil
}

// dropPartly takes the sets alone: Check must see what is left.
func dropPartly([]string) error {
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var setpcap [2]unix.CapUserData
	setpcap[0].Effective, setpcap[0].Permitted = 1<<unix.CAP_SETPCAP, 1<<unix.CAP_SETPCAP
	for _, step := range []struct {
		do   func() error
		want string
	}{
		{func() error { return unix.Capset(&header, &setpcap[0]) }, "permitted"},
		{func() error { return unix.Capset(&header, &make([]unix.CapUserData, 2)[0]) }, "bounding set"},
	} {
		if err := step.do(); err != nil {
			return err
		}
		if err := capability.Check(); err == nil || !strings.Contains(err.Error(), step.want) {
			return fmt.Errorf("want a word about %q: %w", step.want, err)
		}
	}
	return nil
}

func child(name string, user bool) linuxtest.Child {
	c := linuxtest.Child{Name: name, User: user}
	if user {
		c.Clone = unix.CLONE_NEWUSER
	}
	return c
}

func TestProbe(t *testing.T) {
	linuxtest.Need(t, capability.Probe())
}

func TestDropThread(t *testing.T) {
	linuxtest.Users(t, func(t *testing.T, user bool) {
		out := linuxtest.OK(t, child("thread", user))
		for line := range strings.Lines(out) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
			if want := map[bool]string{true: "1", false: "0000000000000000"}[name == "NoNewPrivs"]; value != want {
				t.Errorf("a program finds %s %s, want %s", name, value, want)
			}
		}
		if strings.Count(out, "Cap") != 5 {
			t.Errorf("a program finds %q", out)
		}
	})
}

func TestDropNeedsPrivileges(t *testing.T) {
	linuxtest.OK(t, linuxtest.Child{Name: "weak", User: true})
}

func TestCheckSeesRests(t *testing.T) {
	linuxtest.Users(t, func(t *testing.T, user bool) { linuxtest.OK(t, child("partial", user)) })
	if os.Getuid() == 0 && capability.Check() == nil {
		t.Error("root has nothing")
	}
}
