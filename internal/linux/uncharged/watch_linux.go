package uncharged

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// What the programs of one sandbox may hold. A lock is some 200 bytes of the
// kernel's memory, a connection that was not accepted some 4 KiB without what it has
// queued, and a UDP socket that shares its port some 2 KiB.
const (
	MostLocks   = 16_384
	MostSockets = 8_192
)

// Step is how much more memory the kernel must hold before locks are counted, and seldom
// after how many looks they are anyway.
const (
	Step   = 8 << 20
	seldom = 20
)

// Kind is what was counted.
type Kind byte

// The kinds.
const (
	Locks Kind = iota + 1
	Sockets
)

// Excess is more than there may be.
type Excess struct {
	Kind        Kind
	Count, Most uint64
}

// Watch counts for one sandbox. It is for one caller at a time.
type Watch struct {
	memory, locks int
	sockets       [2]int // of IPv4 and IPv6; -1: there is none
	base          uint64 // bytes that the kernel held when it was least since the last count
	looks         int    // since the last count of locks
	text          [8 << 10]byte
}

// Open returns a watch over the sandbox of which proc is the /proc, and process a
// process of it as the caller's own /proc shows it, such as /proc/self. The caller
// closes it.
func Open(proc, process string) (_ *Watch, err error) {
	w := &Watch{memory: -1, locks: -1, sockets: [2]int{-1, -1}}
	defer func() {
		if err != nil {
			w.Close()
		}
	}()
	for _, f := range []struct {
		to   *int
		path string
	}{
		{&w.memory, "/proc/meminfo"},
		{&w.locks, filepath.Join(proc, "locks")},
		{&w.sockets[0], filepath.Join(process, "net/sockstat")},
		{&w.sockets[1], filepath.Join(process, "net/sockstat6")},
	} {
		*f.to, err = unix.Open(f.path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil && (f.to != &w.sockets[1] || !errors.Is(err, unix.ENOENT)) {
			return nil, &os.PathError{Op: "open", Path: f.path, Err: err}
		}
	}
	w.base = w.held()
	return w, nil
}

// Close lets go of what the watch has open.
func (w *Watch) Close() {
	for _, fd := range []int{w.memory, w.locks, w.sockets[0], w.sockets[1]} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// Look returns what there is too much of. Sockets are counted every time, which
// holds up no process; locks when the kernel holds more than it did, and now and then, since
// another sandbox may have given back meanwhile what was taken here.
func (w *Watch) Look() (e Excess, found bool) {
	if n := w.inUse(); n > MostSockets {
		return Excess{Sockets, n, MostSockets}, true
	}
	held := w.held()
	w.base = min(w.base, held)
	if w.looks++; held-w.base < Step && w.looks < seldom {
		return e, false
	}
	w.base, w.looks = held, 0
	if n := w.lockCount(); n > MostLocks {
		return Excess{Locks, n, MostLocks}, true
	}
	return e, false
}

// held is how much the kernel holds that it cannot give back, of all its users; 0
// where it does not say.
func (w *Watch) held() uint64 {
	return number(w.read(w.memory, 0), "SUnreclaim:") << 10
}

// inUse counts sockets of TCP in every state, accepted or not, and those of UDP
// that have a port.
func (w *Watch) inUse() uint64 {
	n := uint64(0)
	for i, keys := range [][2]string{{"TCP: inuse", "UDP: inuse"}, {"TCP6: inuse", "UDP6: inuse"}} {
		if w.sockets[i] >= 0 {
			text := w.read(w.sockets[i], 0)
			n += number(text, keys[0]) + number(text, keys[1])
		}
	}
	return n
}

// lockCount counts locks, until there are too many: every page takes the kernel longer
// than the one before.
func (w *Watch) lockCount() uint64 {
	n, at := uint64(0), int64(0)
	for n <= MostLocks {
		text := w.read(w.locks, at)
		if len(text) == 0 {
			break
		}
		at += int64(len(text))
		n += uint64(bytes.Count(text, []byte("\n")) - bytes.Count(text, []byte(" OFDLCK "))) //nolint:gosec // the second are among the first
	}
	return n
}

func (w *Watch) read(fd int, at int64) []byte {
	n, err := unix.Pread(fd, w.text[:], at)
	if err != nil {
		return nil
	}
	return w.text[:n]
}

// number is what follows a word at the beginning of a line; 0 if nothing does.
func number(text []byte, word string) uint64 {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(word)); ok {
			if f := bytes.Fields(rest); len(f) > 0 {
				n, _ := strconv.ParseUint(string(f[0]), 10, 50) // the kernel writes numbers
				return n
			}
		}
	}
	return 0
}
