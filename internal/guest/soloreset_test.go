//go:build linux

package guest_test

import (
	"context"
	"encoding/binary"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/linux/solo"
)

// TestSoloReset is about a first process that sends its report and exits before
// it reads a signal. The kernel then returns ECONNRESET before the report.
func TestSoloReset(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := guest.NewSolo(fds[0], 1024, guest.Options{}, func(context.Context) error { return nil }, nil)
	defer func() { _ = s.Close() }()
	p, err := s.Start(t.Context(), cove.Command{Argv: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(t.Context(), "TERM"); err != nil {
		t.Fatal(err)
	}
	report := make([]byte, solo.ReportSize)
	binary.NativeEndian.PutUint64(report[16:], 7<<8) // the status
	exit(t, fds[1], report)
	got, err := p.Wait(t.Context())
	if err != nil || got.Outcome != cove.Exited || got.ExitCode != 7 {
		t.Errorf("the result is %+v, %v; want exit code 7", got, err)
	}
}

// exit sends a packet and closes the socket, which has unread packets. On one
// processor and without the scheduler no goroutine reads between the two calls.
func exit(t *testing.T, fd int, packet []byte) {
	t.Helper()
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	n, _, sent := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&packet[0])), uintptr(len(packet)))
	_, _, closed := unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	if int(n) != len(packet) || sent != 0 || closed != 0 {
		t.Fatalf("%d bytes were sent: %v, %v", n, sent, closed)
	}
}
