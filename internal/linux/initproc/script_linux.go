package initproc

import (
	"errors"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// script is a list of system calls for the child, which can neither allocate
// nor look anything up.
type script struct {
	steps []step
	names []string // of the steps
	// What the arguments point to; nothing of it moves.
	texts    [][]byte
	numbers  [][]uint64
	vectors  [][]*byte
	filters  [][]syscall.SockFilter
	programs []*syscall.SockFprog
	// Where the descriptors are that are needed to the end.
	executable, ruleset int
	err                 error

	outcome outcome
}

// step is one system call. With useLast its first argument is what the step
// before it returned.
type step struct {
	number  uintptr
	args    [6]uintptr
	useLast bool
	allowed [2]syscall.Errno // errors that do not matter
}

func (s *script) call(name string, number uintptr, args ...uintptr) *step {
	st := step{number: number}
	copy(st.args[:], args)
	s.steps, s.names = append(s.steps, st), append(s.names, name)
	return &s.steps[len(s.steps)-1]
}

func (st *step) orElse(allowed ...syscall.Errno) { copy(st.allowed[:], allowed) }

// write replaces what a file below a directory holds.
func (s *script) write(name string, dir int, file, text string) {
	s.call(name, unix.SYS_OPENAT, uintptr(dir), s.text(file), unix.O_WRONLY|unix.O_CLOEXEC)
	s.call(name, unix.SYS_WRITE, 0, s.text(text), uintptr(len(text))).useLast = true
}

// text is the address of a string as C has it.
func (s *script) text(t string) uintptr { return address(s.bytes(t)) }

func (s *script) bytes(t string) *byte {
	if strings.IndexByte(t, 0) >= 0 {
		s.err = errors.New("a name or an argument holds a NUL byte")
	}
	b := append([]byte(t), 0)
	s.texts = append(s.texts, b)
	return &b[0]
}

func (s *script) words(v ...uint64) uintptr {
	s.numbers = append(s.numbers, v)
	return address(&v[0])
}

// vector is the address of a list of strings with a nil at its end.
func (s *script) vector(list []string) uintptr {
	v := make([]*byte, 0, len(list)+1)
	for _, t := range list {
		v = append(v, s.bytes(t))
	}
	v = append(v, nil)
	s.vectors = append(s.vectors, v)
	return address(&v[0])
}

func (s *script) program(f []syscall.SockFilter) uintptr {
	p := &syscall.SockFprog{Len: uint16(len(f)), Filter: &f[0]} //nolint:gosec // the kernel takes no more than 4096
	s.filters, s.programs = append(s.filters, f), append(s.programs, p)
	return address(p)
}

func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) } //nolint:gosec // what system calls take

func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
