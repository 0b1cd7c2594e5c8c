package rlimit_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/rlimit"
)

func TestMain(m *testing.M) {
	linuxtest.Main(m, map[string]linuxtest.Func{"set": set, "lowered": lowered})
}

func expect(r rlimit.Resource, want uint64) error {
	var got unix.Rlimit
	if err := unix.Prlimit(0, int(r), nil, &got); err != nil {
		return err
	}
	if got.Cur != want || got.Max != want {
		return fmt.Errorf("%s is %d of %d, want %d", r, got.Cur, got.Max, want)
	}
	return nil
}

func set([]string) error {
	for r, value := range map[rlimit.Resource]uint64{rlimit.Core: 0, rlimit.Files: 64, rlimit.FileSize: 1 << 20, rlimit.Processes: 100, rlimit.Locked: 4096} {
		if err := rlimit.Set(r, value); err != nil {
			return err
		}
		if err := expect(r, value); err != nil {
			return err
		}
	}
	for range 64 {
		f, err := os.Open(os.DevNull)
		if errors.Is(err, unix.EMFILE) {
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
	}
	return errors.New("64 descriptors more could be opened")
}

func lowered([]string) error {
	if err := rlimit.Set(rlimit.Files, 50); err != nil {
		return err
	}
	err := rlimit.Set(rlimit.Files, rlimit.Unlimited)
	l, ok := errors.AsType[*rlimit.Lowered](err)
	if !ok || l.Got != 50 || l.Want != rlimit.Unlimited || l.Resource != rlimit.Files {
		return fmt.Errorf("raising a limit: %w", err)
	}
	const text = "limit on open files: 50 is in force and not 18446744073709551615: the process is bounded so itself, and has no CAP_SYS_RESOURCE"
	if err.Error() != text {
		return fmt.Errorf("it reads %q", err.Error())
	}
	return expect(rlimit.Files, 50)
}

func TestSet(t *testing.T) {
	linuxtest.Users(t, func(t *testing.T, user bool) { linuxtest.OK(t, linuxtest.Child{Name: "set", User: user}) })
}

func TestLowered(t *testing.T) {
	linuxtest.OK(t, linuxtest.Child{Name: "lowered", User: true})
}

func TestUnknownResource(t *testing.T) {
	err := rlimit.Set(99, 1)
	if !errors.Is(err, unix.EINVAL) || err.Error() != "limit on resource 99: invalid argument" {
		t.Errorf("resource 99: %v", err)
	}
}
