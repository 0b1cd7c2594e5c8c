package solo

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// code is the process. It is never called here, only copied.
func code() //nolint:unused // the assembler has it

// entry is the address of code.
func entry() uintptr

// mark stands behind the code.
var mark = []byte("cove.End")

// machineCode is the code, as it is in this program.
func machineCode() []byte {
	const most = 4096
	at := (*[most]byte)(*(*unsafe.Pointer)(unsafe.Pointer(new(entry())))) //nolint:gosec // an address of this program's text
	n := bytes.Index(at[:], mark)
	return append([]byte(nil), at[:max(n, 0)]...)
}

// loadAt is where the executable is in memory. All sizes of pages divide it.
const loadAt = 0x400000

// What an ELF header says, of those things that are not 0.
const (
	elfHeader  = 64
	elfProgram = 56
	elfStart   = elfHeader + 2*elfProgram
)

// elf wraps code up as an executable: one part that can be read and executed,
// and a stack that cannot be.
func elf(code []byte) []byte {
	le := binary.LittleEndian
	b := []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	b = le.AppendUint16(b, 2) // an executable
	b = le.AppendUint16(b, machine)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, loadAt+elfStart)
	b = le.AppendUint64(b, elfHeader) // where the parts are listed
	b = le.AppendUint64(b, 0)
	b = le.AppendUint32(b, 0)
	for _, n := range []uint16{elfHeader, elfProgram, 2, 64, 0, 0} {
		b = le.AppendUint16(b, n)
	}
	size := uint64(elfStart + len(code))
	part := func(kind, flags uint32, at, size, align uint64) {
		b = le.AppendUint32(b, kind)
		b = le.AppendUint32(b, flags)
		for _, n := range []uint64{0, at, at, size, size, align} {
			b = le.AppendUint64(b, n)
		}
	}
	part(1, 5, loadAt, size, 1<<16) // PT_LOAD, read and execute
	part(0x6474e551, 6, 0, 0, 1<<4) // PT_GNU_STACK, read and write
	return append(b, code...)
}

// Image returns a descriptor of the executable, which the caller closes. Nobody
// can write to the file. It needs a /proc.
func Image() (int, error) {
	// While the file can be written to, nobody may be forked who holds it:
	// a file that somebody can write to cannot be executed.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.MemfdCreate("cove-solo", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	defer func() { _ = unix.Close(fd) }()
	text := elf(machineCode())
	if n, err := unix.Write(fd, text); err != nil || n < len(text) {
		return -1, os.NewSyscallError("write", err)
	}
	if err := unix.Fchmod(fd, 0o555); err != nil {
		return -1, os.NewSyscallError("fchmod", err)
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return -1, os.NewSyscallError("fcntl", err)
	}
	return unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_PATH|unix.O_CLOEXEC, 0)
}
