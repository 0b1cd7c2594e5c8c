package userns_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
	"github.com/cove-sandbox/cove/internal/linux/userns"
)

func TestMain(m *testing.M) {
	linuxtest.Main(m, map[string]linuxtest.Func{"probe": probe, "hold": hold, "take": take})
}

// probe makes this process a poor one, and probes.
func probe(args []string) error {
	switch args[0] {
	case "none left":
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
			return err
		}
	case "masked":
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		if err := unix.Mount("tmpfs", "/proc/sys", "tmpfs", unix.MS_RDONLY, ""); err != nil {
			return err
		}
	case "filtered":
		prog, err := seccomp.Sandbox().Compile()
		if err != nil {
			return err
		}
		runtime.LockOSThread()
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		if err := seccomp.Install(prog, true); err != nil {
			return err
		}
	}
	r := userns.Probe()
	for _, err := range []error{r.Create, r.Map, r.Mount, r.Proc} {
		if err == nil {
			fmt.Println("fine") //nolint:forbidigo // this is the report
			continue
		}
		fmt.Println(err.Error() + " | " + linux.RemedyOf(err)) //nolint:forbidigo // this is the report
	}
	return nil
}

func TestProbe(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	linuxtest.Users(t, func(t *testing.T, user bool) {
		out := linuxtest.OK(t, linuxtest.Child{Name: "probe", Args: []string{"plain"}, User: user})
		if out != "fine\nfine\nfine\nfine" {
			linuxtest.Need(t, errors.New(out))
		}
	})
}

// TestProbeFinds makes the obstacles for real.
func TestProbeFinds(t *testing.T) {
	if r := userns.Probe(); r.Mount != nil {
		linuxtest.Need(t, r.Mount)
	}
	const later = "it was not tried"
	for obstacle, want := range map[string][4]string{
		"none left": {"max_user_namespaces is 0", later, later, later},
		"masked":    {"fine", "fine", "fine", "masked"},
		"filtered":  {"seccomp filter", later, later, later},
	} {
		t.Run(obstacle, func(t *testing.T) {
			c := linuxtest.Child{Name: "probe", Args: []string{obstacle}, User: true, Clone: unix.CLONE_NEWUSER | unix.CLONE_NEWNS}
			lines := strings.Split(linuxtest.OK(t, c), "\n")
			if len(lines) != len(want) {
				t.Fatalf("%q", lines)
			}
			for i, line := range lines {
				if !strings.Contains(line, want[i]) {
					t.Errorf("step %d: %q, want %q", i, line, want[i])
				}
			}
		})
	}
}

// host makes a file tree with some settings.
func host(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestExplain(t *testing.T) {
	const ok = syscall.Errno(0)
	filter := map[string]string{"proc/self/status": "Name:\tx\nSeccomp:\t2\n"}
	docker := map[string]string{"proc/self/status": "Name:\tx\nSeccomp:\t2\n", ".dockerenv": ""}
	for name, c := range map[string]struct {
		files map[string]string
		said  []syscall.Errno
		want  string // in cause and remedy of the first step that failed
	}{
		"debian":       {map[string]string{"proc/sys/kernel/unprivileged_userns_clone": "0\n"}, []syscall.Errno{unix.EPERM}, "unprivileged_userns_clone=1"},
		"none":         {map[string]string{"proc/sys/user/max_user_namespaces": "0\n"}, []syscall.Errno{unix.ENOSPC}, "max_user_namespaces=10000"},
		"full":         {map[string]string{"proc/sys/user/max_user_namespaces": "5\n"}, []syscall.Errno{unix.ENOSPC}, "raise user.max_user_namespaces"},
		"ubuntu":       {map[string]string{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}, []syscall.Errno{ok, ok, unix.EACCES}, "AppArmor profile"},
		"ubuntu map":   {map[string]string{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}, []syscall.Errno{ok, unix.EPERM}, "AppArmor profile"},
		"old kernel":   {nil, []syscall.Errno{unix.EINVAL}, "CONFIG_USER_NS"},
		"filter":       {filter, []syscall.Errno{unix.EPERM}, "seccomp=unconfined"},
		"chroot":       {nil, []syscall.Errno{unix.EPERM}, "chroot"},
		"docker mount": {docker, []syscall.Errno{ok, ok, unix.EPERM}, "apparmor=unconfined"},
		"module":       {nil, []syscall.Errno{ok, ok, unix.EACCES}, "kernel's log"},
		"masked":       {docker, []syscall.Errno{ok, ok, ok, unix.EPERM}, "systempaths=unconfined"},
	} {
		r := userns.ExplainAt(host(t, c.files), c.said...)
		first := errors.Join(r.Create, r.Map, r.Mount, r.Proc)
		if first == nil {
			t.Errorf("%s: nothing is missing", name)
			continue
		}
		if text := fmt.Sprint(first, linux.RemedyOf(first)); !strings.Contains(text, c.want) || !errors.Is(first, errors.ErrUnsupported) {
			t.Errorf("%s: %q does not say %q", name, text, c.want)
		}
	}
	if r := userns.ExplainAt(t.TempDir()); r != (userns.Report{}) {
		t.Errorf("all went well, and it says %+v", r)
	}
}
