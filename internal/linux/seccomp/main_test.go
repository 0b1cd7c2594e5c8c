package seccomp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
)

func TestMain(m *testing.M) {
	linuxtest.Main(m, map[string]linuxtest.Func{
		"exec":    fencedExec,
		"try":     fencedCalls,
		"foreign": foreignCode,
		"threads": fenceThreads,
		"limits":  limitedFilters,
		"naked":   func([]string) error { return fence(false) },
	})
}

// fence puts the sandbox's policy over this thread or process.
func fence(allThreads bool) error {
	prog, err := seccomp.Sandbox().Compile()
	if err != nil {
		return err
	}
	return seccomp.Install(prog, allThreads)
}

func lockedFence() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return fence(false)
}

func fencedExec(args []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	if err := lockedFence(); err != nil {
		return err
	}
	return syscall.Exec(path, args, os.Environ())
}

// attempt is one call and the error it must end with.
type attempt struct {
	Name string
	Args [6]uint64
	Want syscall.Errno
}

func fencedCalls(args []string) error {
	var all []attempt
	if err := json.Unmarshal([]byte(args[0]), &all); err != nil {
		return err
	}
	if err := lockedFence(); err != nil {
		return err
	}
	var wrong []error
	for _, a := range all {
		n, ok := seccomp.Number(a.Name)
		if !ok {
			continue
		}
		x := a.Args
		_, _, errno := unix.RawSyscall6(uintptr(n), uintptr(x[0]), uintptr(x[1]), uintptr(x[2]), uintptr(x[3]), uintptr(x[4]), uintptr(x[5]))
		if errno != a.Want {
			wrong = append(wrong, fmt.Errorf("%s%x gave %w, want %w", a.Name, a.Args, errno, a.Want))
		}
	}
	return errors.Join(wrong...)
}

// fenceThreads installs the filter from one thread and tries from others.
func fenceThreads([]string) error {
	const threads = 4
	ready, fenced := make(chan bool), make(chan bool)
	errs := make(chan error, threads)
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() {
			runtime.LockOSThread()
			ready <- true
			<-fenced
			if err := unix.Unshare(unix.CLONE_FS); !errors.Is(err, unix.EPERM) {
				errs <- fmt.Errorf("unshare gave %w", err)
			}
		})
	}
	for range threads {
		<-ready
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := fence(true); err != nil {
		return err
	}
	close(fenced)
	wg.Wait()
	close(errs)
	return <-errs
}

// try makes calls under the filter.
func try(t *testing.T, all []attempt) {
	t.Helper()
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	linuxtest.OK(t, linuxtest.Child{Name: "try", Args: []string{string(text)}})
}

func TestProbe(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		unix.ENOSYS: "CONFIG_SECCOMP_FILTER", unix.EINVAL: "Linux 4.14", unix.EOPNOTSUPP: "Linux 4.14", unix.EPERM: "container",
	} {
		err := seccomp.Missing(errno)
		if text := fmt.Sprint(err, linux.RemedyOf(err)); !strings.Contains(text, want) {
			t.Errorf("%v: %q does not mention %q", errno, text, want)
		}
	}
	linuxtest.Need(t, seccomp.Probe())
}

func TestInstallNeedsNoNewPrivs(t *testing.T) {
	linuxtest.Need(t, seccomp.Probe())
	r := linuxtest.Run(t, linuxtest.Child{Name: "naked", User: true})
	if r.State.Success() || !strings.Contains(r.Stderr, "no_new_privs must be set first") {
		t.Errorf("installing without no_new_privs: %s %s", r.State, r.Stderr)
	}
}

func TestInstallOnAllThreads(t *testing.T) {
	linuxtest.Need(t, seccomp.Probe())
	linuxtest.OK(t, linuxtest.Child{Name: "threads"})
}

// limitedFilters says how many instructions of filters a program could install, after
// it was given so many filters by others.
func limitedFilters(args []string) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	for range len(args[0]) {
		if err := fence(true); err != nil {
			return err
		}
	}
	if args[1] == "limited" {
		if err := seccomp.LimitFilters(true); err != nil {
			return err
		}
	}
	if err := fence(false); err != nil {
		return err
	}
	room := 0
	for n := 4096; n >= 16; {
		filter := slices.Repeat(seccomp.Program{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}, n)
		switch err := seccomp.Install(filter, false); {
		case err == nil:
			room += 2*n + 7 // as the kernel counts
		case errors.Is(err, unix.ENOMEM):
			n /= 2
		default:
			return err
		}
	}
	_, err := fmt.Fprint(os.Stdout, room)
	return err
}

// TestFiltersOfProgramsAreBounded: what a program can install is little, also where
// a parent process has installed some before, and is not nothing.
func TestFiltersOfProgramsAreBounded(t *testing.T) {
	linuxtest.Need(t, seccomp.Probe())
	for _, before := range []string{"", "x", "xxxxxxxxxx"} {
		for how, most := range map[string]int{"limited": 1600, "unlimited": 32768} {
			room, err := strconv.Atoi(linuxtest.OK(t, linuxtest.Child{Name: "limits", Args: []string{before, how}}))
			t.Logf("%s, after %d others: %d instructions", how, len(before), room)
			if err != nil || room > most || room < 1200 || how == "unlimited" && room < 1600 {
				t.Errorf("%s, after %d others: room for %d instructions, %v", how, len(before), room, err)
			}
		}
	}
}
