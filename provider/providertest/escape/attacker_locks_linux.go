package escape

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// How much of the kernel's memory is asked for: what would take 64 MiB of it, at some
// 200 bytes for a lock and 4 KiB for a connection that is not accepted.
const (
	manyLocks       = 340_000
	manyConnections = 16_000
	locksInFile     = 500 // the kernel goes through them one by one
	waitingAtOne    = 100 // connections: fewer than every kernel lets wait
)

// moreFiles raises the limit on descriptors as far as it goes.
func moreFiles() {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil {
		l.Cur = l.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &l) // fewer will do
	}
}

// lockRanges locks single bytes of files that have no name any more.
func lockRanges(mission) verdict {
	moreFiles()
	var files []*os.File // or they would be closed
	defer func() { runtime.KeepAlive(files) }()
	for taken := 0; taken < manyLocks; {
		f, err := os.CreateTemp("", "lock-*")
		if err != nil {
			return heldBy(meaning(err) + " after " + strconv.Itoa(taken) + " locks")
		}
		files = append(files, f)
		_ = os.Remove(f.Name())
		for i := range locksInFile {
			lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(2 * (locksInFile - i)), Len: 1}
			if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock); err != nil {
				return heldBy(meaning(err) + " after " + strconv.Itoa(taken) + " locks")
			}
			taken++
		}
	}
	return breach(fmt.Sprintf("%d locks are held at once, some 64 MiB of the kernel's memory", manyLocks))
}

// lockFiles locks as many descriptors as there can be.
func lockFiles(mission) verdict {
	moreFiles()
	var files []*os.File // or they would be closed
	defer func() { runtime.KeepAlive(files) }()
	for taken := range manyLocks {
		f, err := os.CreateTemp("", "lock-*")
		if err == nil {
			files = append(files, f)
			_ = os.Remove(f.Name())
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		}
		if err != nil {
			return heldBy(meaning(err) + " after " + strconv.Itoa(taken) + " locks of whole files, each of which needs a descriptor")
		}
	}
	return breach(fmt.Sprintf("%d files are locked at once, some 64 MiB of the kernel's memory", manyLocks))
}

// connectUnaccepted makes connections that are not accepted, and closes them: what they
// have left waits with the listener.
func connectUnaccepted(mission) verdict {
	moreFiles()
	made := 0
	var listeners []net.Listener // or they would be closed
	defer func() { runtime.KeepAlive(listeners) }()
	for made < manyConnections {
		l, err := net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // it takes no time
		if err != nil {
			return heldBy(meaning(err) + " after " + strconv.Itoa(made) + " connections")
		}
		listeners = append(listeners, l)
		for range waitingAtOne {
			c, err := net.Dial("tcp4", l.Addr().String()) //nolint:noctx // nor does this
			if err != nil {
				return heldBy(meaning(err) + " after " + strconv.Itoa(made) + " connections")
			}
			_ = c.Close()
			made++
		}
	}
	return breach(fmt.Sprintf("%d connections wait that are not accepted, some 64 MiB of the kernel's memory", made))
}

// shareFiles makes a process with our table of files: the kernel shows its locks to
// no process of the sandbox when it has ended, and keeps them. The child may do nothing but
// end.
//
//go:norace
func shareFiles(mission) verdict {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, unix.CLONE_FILES|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno == 0 && pid == 0 {
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0) //nolint:errcheck // it does not return
		}
	}
	var t tally
	t.make(call{name: "clone with the table of files", do: func() error { return failure(errno) }})
	return t.verdict()
}

// lockBoth takes both kinds of locks of a file that every user may read.
func lockBoth(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
	}
	return f, err
}

// holdLocks locks files that others have, too, and keeps them.
func holdLocks(mission) verdict {
	var held []*os.File
	for _, path := range commonFiles {
		f, err := lockBoth(path)
		if err != nil {
			return breach(path + " cannot be locked: " + meaning(err))
		}
		held = append(held, f)
	}
	say("ready")
	<-time.After(time.Minute)
	runtime.KeepAlive(held)
	return heldBy("")
}

// findLocks looks whether another sandbox has locked the same files.
func findLocks(mission) verdict {
	var t tally
	for _, path := range commonFiles {
		if lockedElsewhere(path) {
			t.through("a lock of another sandbox, of " + path)
		}
		t.stop("files of its own, as the kernel sees them", path)
	}
	return t.verdict()
}
