//go:build linux

package guest

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

// Holder holds the streams of programs that outlive this process, and reads what
// they write. Names are those of one sandbox. Methods are safe for concurrent use.
type Holder interface {
	// Keep begins to read from out and errs, which may be the same as in, a
	// terminal; any may be -1. The descriptors stay the caller's.
	Keep(ctx context.Context, keep string, note []byte, in, out, errs int) error
	// Names returns those that are kept.
	Names(ctx context.Context) ([]string, error)
	// Look returns the note, and the input, which the caller closes; -1 if it is
	// closed.
	Look(ctx context.Context, keep string) (note []byte, in int, err error)
	// Follow yields what was written, from the first byte on, until the program is
	// finished and all of it was read. A chunk without data stands for output that was
	// dropped: its Offset is how many bytes of its stream.
	Follow(ctx context.Context, keep string) iter.Seq2[cove.Chunk, error]
	// Shut closes the holder's end of the input.
	Shut(ctx context.Context, keep string) error
	// Finish says that the program has ended.
	Finish(ctx context.Context, keep string) error
	// Forget frees what is kept. An unknown name is no error.
	Forget(ctx context.Context, keep string) error
}
