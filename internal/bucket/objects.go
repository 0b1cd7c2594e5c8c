package bucket

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// The folders of a store.
const (
	blobs    = "blobs"
	sessions = "sessions"
	drafts   = "drafts"
)

// objects is a store of immutable files by name, which are whole or not there.
// Names are made by this package: letters and digits, most behind a folder and a slash.
// Missing ones are errMissing; every other error is ready to be shown.
type objects interface {
	// put stores content under a name, and replaces what is there.
	put(ctx context.Context, name string, c content) error
	// get returns a stream and its length. It may end with ctx.
	get(ctx context.Context, name string) (io.ReadCloser, int64, error)
	// stat returns the length.
	stat(ctx context.Context, name string) (int64, error)
	// list yields what is in a folder, by name. There may be strangers.
	list(ctx context.Context, folder string) iter.Seq2[entry, error]
	// delete is idempotent.
	delete(ctx context.Context, name string) error
	// now reads the clock that the times of entries are of.
	now(ctx context.Context) (time.Time, error)
	// most is the length of the longest object.
	most() int64
	// about is the store in messages.
	about() string
	close() error
}

// entry is one line of a list.
type entry struct {
	name     string // without the folder
	modified time.Time
}

// content can be read again, should it have to be sent again.
type content struct {
	r      io.ReaderAt
	size   int64
	digest string // its SHA-256 in hex
}

func (c content) reader() *io.SectionReader { return io.NewSectionReader(c.r, 0, c.size) }

var errMissing = errors.New("no such object")
