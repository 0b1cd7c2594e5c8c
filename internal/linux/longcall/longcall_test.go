//go:build linux

package longcall_test

import (
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/longcall"
)

// TestOthersGoOn has more goroutines wait than there are processors, while garbage
// is collected and stacks grow.
func TestOthersGoOn(t *testing.T) {
	const waiting = 16
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(ends[0]) }()
	got := make(chan byte)
	for range waiting {
		go func() {
			var b [1]byte
			r, errno := longcall.Call(unix.SYS_READ, uintptr(ends[0]), uintptr(unsafe.Pointer(&b[0])), 1, 0)
			if r != 1 || errno != 0 {
				b[0] = '!'
			}
			got <- b[0]
		}()
	}
	for i := range waiting {
		runtime.GC()
		deep(64)
		if _, err := unix.Write(ends[1], []byte{'a' + byte(i)}); err != nil {
			t.Fatal(err)
		}
		if b := <-got; b != 'a'+byte(i) {
			t.Errorf("the reader of %q has %q", 'a'+byte(i), b)
		}
	}
	_ = unix.Close(ends[1])
}

// deep needs a stack of 64 KiB.
func deep(n int) byte {
	var frame [1024]byte
	if n > 0 {
		frame[n] = deep(n - 1)
	}
	return frame[n]
}

func TestErrorsAreTold(t *testing.T) {
	if r, errno := longcall.Call(unix.SYS_CLOSE, ^uintptr(0), 0, 0, 0); errno != unix.EBADF {
		t.Errorf("closing nothing gives %d and %v", r, errno)
	}
}
