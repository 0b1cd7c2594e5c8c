package gvisor

import (
	"context"
	"io"
	"os"

	"github.com/cove-sandbox/cove/internal/linux/cgroup"
)

// runtime is who makes and ends sandboxes. A sandbox has the same name with it
// that it has with us. Methods are safe for concurrent use.
type runtime interface {
	// create makes a sandbox and starts its first process. On error nothing is left.
	create(ctx context.Context, id string, b birth) error
	// enter starts a program in a sandbox, as its root and with few privileges or
	// none, and returns its streams.
	enter(ctx context.Context, id string, e entry) (*entered, error)
	pause(ctx context.Context, id string) error
	resume(ctx context.Context, id string) error
	// checkpoint writes the memory of a sandbox into a directory, which must be
	// empty. The sandbox goes on.
	checkpoint(ctx context.Context, id, image string) error
	// remove ends a sandbox, whatever state it is in. One that is not there is no
	// error.
	remove(ctx context.Context, id string) error
	// close lets go of what the runtime has here. Sandboxes live on.
	close() error
}

// birth is what a sandbox is made from.
type birth struct {
	bundle string
	image  string        // it goes on from there; "" begins anew
	group  *cgroup.Group // all of it is in there; nil is none
	// holder is open for as long as it lives: its first process reads nothing from there.
	holder *os.File
	// still says that nobody changes what it sees of the host while it lives, so that
	// it need not look twice.
	still bool
}

// entry is a program that enters a sandbox from outside.
type entry struct {
	argv  []string
	mount bool // it may mount
}

// entered is such a program: what it writes, and what it reads.
type entered struct {
	io.ReadWriteCloser

	// errs is what it said besides, up to now.
	errs func() string
	// settle says that nobody needs to wait for it any more.
	settle func()
}
