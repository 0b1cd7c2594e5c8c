package forkexec

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Orphans tells which children a process was left by others. It is for a reaper
// that looks often: one call, and nothing to read where there is nobody.
type Orphans struct {
	fd  int // -1: the kernel keeps no list
	buf []byte
}

// NewOrphans returns the orphans of this process. It needs a /proc of the
// caller's pid namespace.
func NewOrphans() (*Orphans, error) {
	if err := ownProc(); err != nil {
		return nil, err
	}
	// They come to the first thread, which lives as long as the process in Go.
	pid := strconv.Itoa(os.Getpid())
	fd, err := unix.Open("/proc/"+pid+"/task/"+pid+"/children", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		fd = -1 // CONFIG_PROC_CHILDREN is off
	}
	return &Orphans{fd: fd}, nil
}

// List returns the pids of children, all orphans among them, and also such as
// the process started itself. The next call uses the list again.
func (o *Orphans) List(list []int) ([]int, error) {
	if o.fd < 0 {
		return Children(os.Getpid())
	}
	const least = 512
	if o.buf == nil {
		o.buf = make([]byte, least)
	}
	for n := 0; ; {
		more, err := unix.Pread(o.fd, o.buf[n:], int64(n))
		if err != nil {
			return nil, err
		}
		// The kernel stops early only where the next number has no room: in the
		// buffer, or in a page of its own.
		const number = 12
		if n += more; more == 0 || n < min(len(o.buf), os.Getpagesize())-number {
			return numbers(list[:0], o.buf[:n]), nil
		}
		if len(o.buf)-n < number {
			o.buf = append(o.buf, make([]byte, len(o.buf))...)
		}
	}
}

// numbers appends the numbers of a text with a space after each.
func numbers(list []int, text []byte) []int {
	n := 0
	for _, c := range text {
		if c == ' ' {
			list = append(list, n)
			n = 0
			continue
		}
		n = n*10 + int(c-'0')
	}
	return list
}
