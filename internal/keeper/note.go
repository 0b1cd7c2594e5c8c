//go:build linux

package keeper

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// noteName is the descriptor of a note that is too large for a message.
const noteName = "note"

func withFile(r *request, name string) *request {
	r.names = append(r.names, name)
	return r
}

// noteFile puts a note into a file in memory.
func noteFile(note []byte) (*os.File, error) {
	if len(note) > MaxNote {
		return nil, protocol.ErrMalformed
	}
	fd, err := unix.MemfdCreate(noteName, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), noteName)
	if _, err := f.Write(note); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// readNote reads a note from its file, which it closes. Its position is shared by
// all who have the file.
func readNote(fd int) ([]byte, error) {
	f := os.NewFile(uintptr(fd), noteName)
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.NewSectionReader(f, 0, MaxNote))
}
