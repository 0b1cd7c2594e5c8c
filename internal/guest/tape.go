//go:build linux

package guest

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
)

// A tape is a file in memory with what a recorded program wrote to one of its streams,
// at the offsets of the stream, behind room for two marks. Bytes get from the pipe to
// the tape in one step of the kernel, so that they are in one of the two whenever this
// process is killed.
type tape struct {
	file  *os.File
	freed int64 // of the stream; no memory is used for what was before
}

// Of the marks on a tape. They are written in turn, so that the last one stays whole
// while the next one is written.
const (
	slotBytes = 32 << 10
	slotHead  = 8 + 8 + 8 + 4 + 4 // count, offsets, length and checksum
	tapeHead  = 2 * slotBytes
	// freeBytes is how much is freed at once.
	freeBytes = 64 << 10
)

func newTape() (*tape, error) {
	fd, err := unix.MemfdCreate("tape", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	t := &tape{file: os.NewFile(uintptr(fd), "tape")}
	if err := t.file.Truncate(tapeHead); err != nil {
		return nil, errors.Join(err, t.file.Close())
	}
	return t, nil
}

// size is how much of the stream was written so far.
func (t *tape) size() (int64, error) {
	info, err := t.file.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() < tapeHead {
		return 0, io.ErrUnexpectedEOF
	}
	return info.Size() - tapeHead, nil
}

// take moves what is in a pipe to the end of the tape and returns it, in buf. It is
// EAGAIN where there is nothing.
func (t *tape) take(pipe int, at int64, buf []byte) ([]byte, error) {
	var n int64
	var err error
	off := tapeHead + at
	if cerr := withFD(t.file, func(fd int) {
		for {
			n, err = unix.Splice(pipe, nil, fd, &off, len(buf), unix.SPLICE_F_NONBLOCK)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}); cerr != nil {
		return nil, cerr
	}
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	_, err = t.file.ReadAt(buf[:n], tapeHead+at)
	return buf[:n], err
}

// withFD calls do with the descriptor of a file that may be closed meanwhile.
func withFD(f *os.File, do func(fd int)) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { do(int(fd)) })
}

// free gives back the memory of what was before an offset.
func (t *tape) free(to int64) {
	if to-t.freed < freeBytes {
		return
	}
	t.freed = to
	_ = withFD(t.file, func(fd int) {
		_ = unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, tapeHead, to)
	})
}

// writeMark writes the mark with a number that is one more than that of the last.
func (t *tape) writeMark(count uint64, m cove.Mark) error {
	b := make([]byte, slotHead, slotHead+len(m.Note))
	binary.LittleEndian.PutUint64(b, count)
	binary.LittleEndian.PutUint64(b[8:], uint64(m.Stdout))     //nolint:gosec // not negative
	binary.LittleEndian.PutUint64(b[16:], uint64(m.Stderr))    //nolint:gosec // not negative
	binary.LittleEndian.PutUint32(b[24:], uint32(len(m.Note))) //nolint:gosec // bounded
	b = append(b, m.Note...)
	binary.LittleEndian.PutUint32(b[28:], checksum(b))
	_, err := t.file.WriteAt(b, int64(count%2)*slotBytes)
	return err
}

// checksum is that of a mark, but for the checksum itself.
func checksum(b []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(b[:28]), crc32.IEEETable, b[slotHead:])
}

// readMark returns the newest mark that is whole.
func (t *tape) readMark() (count uint64, m cove.Mark, err error) {
	found := false
	for slot := range int64(2) {
		b := make([]byte, slotBytes)
		if _, err := t.file.ReadAt(b, slot*slotBytes); err != nil {
			return 0, m, err
		}
		n := int(binary.LittleEndian.Uint32(b[24:]))
		if n > maxNote || binary.LittleEndian.Uint32(b[28:]) != checksum(b[:slotHead+n]) {
			continue
		}
		c := binary.LittleEndian.Uint64(b)
		if c == 0 || found && c < count {
			continue
		}
		found, count = true, c
		m = cove.Mark{Note: b[slotHead : slotHead+n], Stdout: int64(binary.LittleEndian.Uint64(b[8:])), Stderr: int64(binary.LittleEndian.Uint64(b[16:]))} //nolint:gosec // as they were written
	}
	if !found || m.Stdout < 0 || m.Stderr < 0 {
		return 0, m, io.ErrUnexpectedEOF
	}
	return count, m, nil
}
