package landlock_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/landlock"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

// inherited restricts itself by a descriptor that was made before, to one file
// that is known by a descriptor only.
func inherited(args []string) error {
	runtime.LockOSThread()
	dir := args[0]
	file, err := unix.Open(dir+"/file", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	fd, report, err := landlock.Open(landlock.Ruleset{Rules: []landlock.Rule{{File: file, Allow: landlock.ReadFile}, {Path: dir + "/ro", Allow: landlock.ReadOnly}}})
	if err != nil {
		return err
	}
	if report.ABI == 0 {
		return errors.New("the report has no version")
	}
	if err := errors.Join(read(dir+"/secret"), read(dir+"/file")); err != nil {
		return fmt.Errorf("restricted too early: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := syscall.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(fd), 0, 0); errno != 0 {
		return errno
	}
	if err := errors.Join(read(dir+"/file"), read(dir+"/ro/a")); err != nil {
		return err
	}
	if err := read(dir + "/secret"); !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("what no rule allows: %w", err)
	}
	return nil
}

func TestOpen(t *testing.T) {
	linuxtest.Need(t, landlock.Probe())
	linuxtest.Users(t, func(t *testing.T, user bool) {
		linuxtest.NoLeaks(t, "")
		dir, err := os.MkdirTemp("/tmp", "cove-test-*") //nolint:usetesting // the tests' own is closed to others
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "ro"), 0o755)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"file", "secret", "ro/a"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		linuxtest.OK(t, linuxtest.Child{Name: "inherited", Args: []string{dir}, User: user})
	})
}

func TestOpenErrors(t *testing.T) {
	linuxtest.Need(t, landlock.Probe())
	linuxtest.NoLeaks(t, "")
	for name, r := range map[string]landlock.Rule{
		"no such path":     {Path: "/no/such", Allow: landlock.ReadOnly},
		"no descriptor":    {File: 1 << 20, Allow: landlock.ReadOnly},
		"nothing negative": {File: -1, Allow: landlock.ReadOnly},
	} {
		t.Run(name, func(t *testing.T) {
			if fd, _, err := landlock.Open(landlock.Ruleset{Rules: []landlock.Rule{r}}); err == nil || fd != -1 {
				t.Errorf("it has descriptor %d, %v", fd, err)
			}
		})
	}
}
