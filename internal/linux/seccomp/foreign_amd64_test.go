package seccomp_test

import (
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
)

// foreignCode makes a call that numbers differently: getpid by the 32-bit gate
// or by the x32 numbers, or a call with no number at all.
func foreignCode(args []string) error {
	if args[0] == "fenced" {
		if err := lockedFence(); err != nil {
			return err
		}
	}
	switch args[1] {
	case "int80":
		return int80()
	case "x32":
		_, _, errno := unix.RawSyscall(0x40000000|unix.SYS_GETPID, 0, 0, 0)
		return fmt.Errorf("x32: %w", errno)
	default:
		_, _, errno := unix.RawSyscall(^uintptr(0), 0, 0, 0)
		return fmt.Errorf("minus one: %w", errno)
	}
}

func int80() error {
	code, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	copy(code, []byte{
		0xb8, 20, 0, 0, 0, // mov eax, 20: getpid of i386
		0xcd, 0x80, // int 0x80
		0xc3, // ret
	})
	entry := uintptr(unsafe.Pointer(&code[0]))
	value := &entry
	(*(*func())(unsafe.Pointer(&value)))()
	return errors.New("int 0x80 came back")
}

func TestForeignCodeDies(t *testing.T) {
	linuxtest.Need(t, seccomp.Probe())
	for _, gate := range []string{"int80", "x32", "minus one"} {
		r := linuxtest.Run(t, linuxtest.Child{Name: "foreign", Args: []string{"fenced", gate}})
		if r.Signal() != unix.SIGSYS {
			t.Errorf("%s under the filter: %s %s, want a death by SIGSYS", gate, r.State, r.Stderr)
		}
		// Without the filter it comes back, or else the test shows nothing.
		r = linuxtest.Run(t, linuxtest.Child{Name: "foreign", Args: []string{"free", gate}})
		if gate != "int80" && r.State.ExitCode() != 1 {
			t.Errorf("%s without the filter: %s %s", gate, r.State, r.Stderr)
		}
	}
}
