//go:build linux

package agent

import (
	"runtime/debug"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/forkexec"
	"github.com/cove-sandbox/cove/internal/linux/longcall"
)

// maxHandles bounds the descriptors that are held for orphans: a program may
// leave thousands behind, and others need some, too.
const maxHandles = 256

// Memory is given back when nothing happens for a while after much did. After
// little, collecting the garbage takes more than it gives.
const (
	quiet = 1000 // milliseconds
	much  = 500
)

// family is our children, started by us or left to us, and whose they are. The
// server's lock guards it, but for wait.
type family struct {
	epoll    int
	over     int // readable when nobody is waited for any more
	children map[int]child
	orphans  *forkexec.Orphans // nil until they are looked for
	noProc   bool              // they cannot be
	list     []int             // scratch
	bereaved []uint64          // the programs whose processes ended since orphans were looked for
	handles  int               // of orphans
	unseen   int               // children without a handle
	busy     int               // what happened since memory was given back
}

// child is one process below us.
type child struct {
	owners []uint64 // the programs it belongs to
	handle int      // readable when it has ended; -1 means that nobody looks
	orphan bool
}

func newFamily() (family, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return family{}, err
	}
	over, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return family{}, err
	}
	return family{epoll: epoll, over: over, children: map[int]child{}}, look(epoll, over, 0)
}

// look makes wait tell of a descriptor.
func look(epoll, fd, pid int) error {
	return unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(pid)}) //nolint:gosec // pids are small
}

// finish makes wait end.
func (f *family) finish() { _, _ = unix.Write(f.over, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// wait returns the children that have ended, as soon as there are some, and
// none at the end. It is for one thread, which sleeps in it: nothing wakes up
// sooner.
func (f *family) wait(pids []int) []int {
	patience := -1
	if f.busy++; f.busy > much {
		patience = quiet
	}
	for len(pids) == 0 {
		var events [16]unix.EpollEvent
		r, errno := longcall.Call(unix.SYS_EPOLL_PWAIT, uintptr(f.epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(patience)) //nolint:gosec // what the call takes
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return nil
		}
		if r == 0 {
			f.busy, patience = 0, -1
			debug.FreeOSMemory()
		}
		for _, e := range events[:r] {
			if e.Fd == 0 {
				return nil
			}
			pids = append(pids, int(e.Fd))
		}
	}
	return pids
}

// add takes in a child.
func (f *family) add(pid int, c child) {
	switch {
	case c.handle < 0:
		f.unseen++
	case c.orphan:
		f.handles++
	}
	f.children[pid] = c
}

// watch makes wait tell of a child. It needs no lock.
func (f *family) watch(pid, handle int) error { return look(f.epoll, handle, pid) }

// lose notes that wait will not tell of a child.
func (f *family) lose(pid int) {
	if c, known := f.children[pid]; known {
		_ = unix.Close(c.handle)
		f.unseen++
		f.children[pid] = child{owners: c.owners, handle: -1}
	}
}

// remove forgets a child that was reaped, and returns whose it was.
func (f *family) remove(pid int) []uint64 {
	c, known := f.children[pid]
	if !known {
		return nil
	}
	delete(f.children, pid)
	switch {
	case c.handle < 0:
		f.unseen--
	case c.orphan:
		f.handles--
	}
	if c.handle >= 0 {
		_ = unix.Close(c.handle)
	}
	f.bereaved = append(f.bereaved, c.owners...)
	return c.owners
}

// disown forgets a child that was taken for an orphan of another program: the host put
// it there. It reports false for one that is not an orphan.
func (f *family) disown(pid int) bool {
	c, known := f.children[pid]
	if known && !c.orphan {
		return false
	}
	bereaved := f.bereaved // its owners lost nothing
	f.remove(pid)
	f.bereaved = bereaved
	return true
}

// blind reports whether children may have ended that nobody is told of.
func (f *family) blind() bool { return f.noProc || f.unseen > 0 }

// strangers returns the children that we do not know, and such as are being
// started.
func (f *family) strangers() []int {
	if f.orphans == nil {
		o, err := forkexec.NewOrphans()
		if f.noProc = err != nil; f.noProc {
			return nil
		}
		f.orphans = o
	}
	all, err := f.orphans.List(f.list)
	if err != nil {
		return nil
	}
	f.list = all
	n := 0
	for _, pid := range all {
		if _, known := f.children[pid]; !known {
			all[n] = pid
			n++
		}
	}
	return all[:n]
}

// adopt gives the children that we did not know to the programs whose processes
// ended just now: only those can have left them. When several ended at once it
// cannot be told whose they are, and killing any of them kills the orphan.
func (f *family) adopt() {
	if len(f.bereaved) == 0 {
		return
	}
	slices.Sort(f.bereaved)
	parents := slices.Compact(f.bereaved)
	f.bereaved = nil
	for _, pid := range f.strangers() {
		c := child{owners: parents, handle: -1, orphan: true}
		if f.handles < maxHandles {
			c.handle = f.open(pid)
		}
		f.add(pid, c)
	}
}

// open returns a handle of a child that wait tells of, or -1.
func (f *family) open(pid int) int {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1
	}
	if f.watch(pid, fd) != nil {
		_ = unix.Close(fd)
		return -1
	}
	return fd
}
