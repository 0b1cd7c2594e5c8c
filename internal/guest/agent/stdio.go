//go:build linux

package agent

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/forkexec"
)

// Stdio is the argument of an agent that finds its link on its standard input and
// output, as one that some engine's way to run a program has started. A second one
// names its own file, which it removes.
const Stdio = "stdio"

// stdio serves the host on the standard streams, and gives none of them to
// programs.
func stdio(own []string) int {
	forkexec.Deafen()
	_, _ = unix.Setsid() // as in Main
	for _, name := range own {
		_ = os.Remove(name) //nolint:gosec // named by who started us, and of no use to anybody
	}
	in, err := takeOver(0)
	if err != nil {
		return 1
	}
	out, err := takeOver(1)
	if err != nil {
		return 1
	}
	return serve(protocol.NewAgentFramed(duplex{in, out}), false)
}

// takeOver moves a standard stream to a number that programs do not inherit, and
// leaves nothing in its place.
func takeOver(fd int) (*os.File, error) {
	moved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(unix.Dup3(null, fd, 0), unix.Close(null), unix.SetNonblock(moved, true)); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(moved), "link"), nil
}

// duplex is a link whose two directions are two files.
type duplex struct {
	io.ReadCloser

	w io.WriteCloser
}

func (d duplex) Write(p []byte) (int, error) { return d.w.Write(p) }

func (d duplex) Close() error { return errors.Join(d.ReadCloser.Close(), d.w.Close()) }
