package fence

import (
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/initproc"
)

// view is a thread that sees the host's files as the host does, while all others
// are in the root of sandboxes. What is mounted and unmounted on the host, it
// follows where the host lets it; nothing goes the other way.
type view struct{ work chan func() }

// newView begins one. It must be called before the root is another, and not on
// the last thread: the view lives as long as its process.
func newView() (*view, error) {
	v := &view{work: make(chan func())}
	began := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "")
		}
		began <- err
		if err != nil {
			return
		}
		for f := range v.work {
			f()
		}
	}()
	if err := <-began; err != nil {
		return nil, &initproc.Error{Step: "keep the view of the host", Errno: errnoOf(err)}
	}
	return v, nil
}

// do has something done in the view, and waits for it.
func (v *view) do(f func() error) error {
	done := make(chan error, 1)
	v.work <- func() { done <- f() }
	return <-done
}
