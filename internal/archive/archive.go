package archive

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/cove-sandbox/cove"
)

const (
	suffix      = ".tar"
	draftSuffix = ".draft"
)

// Dir is a cove.Archives in a directory. It is safe for concurrent use. Only
// one Dir may be open on a directory, since opening removes drafts.
type Dir struct {
	path string
	root *os.Root
}

var _ cove.Archives = (*Dir)(nil)

// Open opens the archives in dir, which is made when it is missing; the
// directory above it must exist. Drafts that a crash left are removed. What
// stands in the way is Unavailable, with a message that names the directory and
// says what to do.
func Open(dir string) (*Dir, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fault(dir, err)
	}
	root, err := os.OpenRoot(dir)
	if info, e := os.Stat(dir); err != nil && e == nil && !info.IsDir() {
		err = syscall.ENOTDIR // which OpenRoot says in words of its own
	}
	if err != nil {
		return nil, fault(dir, err)
	}
	d := &Dir{path: dir, root: root}
	if err := errors.Join(d.tighten(), d.sweep()); err != nil {
		return nil, errors.Join(fault(dir, err), root.Close())
	}
	return d, nil
}

// Close gives the directory back. Readers that Get returned stay open.
func (d *Dir) Close() error { return d.root.Close() }

// tighten keeps others out of a directory that was made by hand.
func (d *Dir) tighten() error {
	info, err := d.root.Stat(".")
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	return d.root.Chmod(".", 0o700)
}

// sweep removes drafts.
func (d *Dir) sweep() error {
	names, err := d.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if !isDraft(name) {
			continue
		}
		if err := d.root.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// names lists the directory in order.
func (d *Dir) names() ([]string, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, errors.Join(err, f.Close())
}

// draftName is for one attempt to write one archive.
func draftName(id cove.ID) string { return string(id) + "." + string(cove.NewID()) + draftSuffix }

func isDraft(name string) bool {
	ids, ok := strings.CutSuffix(name, draftSuffix)
	id, attempt, dot := strings.Cut(ids, ".")
	return ok && dot && cove.ID(id).Valid() && cove.ID(attempt).Valid()
}

// nameOf returns the file of an archive. Only an id can be in a name.
func nameOf(id cove.ID) (string, error) {
	if !id.Valid() {
		return "", cove.InvalidField("id", "%.40q is not an id", string(id))
	}
	return string(id) + suffix, nil
}

// Get implements cove.Archives. The stream is read from the disk as the caller
// reads; it stays whole when the archive is replaced or deleted meanwhile. One
// that is not what Put wrote under this id is Unavailable, here or instead of the end of the
// stream: who does not read to the end does not know that it is right.
func (d *Dir) Get(ctx context.Context, id cove.ID) (io.ReadCloser, error) {
	name, err := d.begin(ctx, id)
	if err != nil {
		return nil, err
	}
	f, err := d.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cove.Errorf(cove.NotFound, "there is no archive of %s", id)
	}
	if err != nil {
		return nil, fault(d.path, err)
	}
	want, of, ok, err := readSeal(f)
	switch {
	case err != nil:
		err = fault(d.path, err)
	case !ok:
		err = damaged(id)
	case of != "" && of != id:
		err = foreign(id, of)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &sealed{f: f, id: id, of: of, want: want}, nil
}

// Delete implements cove.Archives.
func (d *Dir) Delete(ctx context.Context, id cove.ID) error {
	name, err := d.begin(ctx, id)
	if err != nil {
		return err
	}
	if err := d.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault(d.path, err)
	}
	return nil
}

// List implements cove.Archives. Ids come in order; files that are no archives
// are passed over.
func (d *Dir) List(ctx context.Context) iter.Seq2[cove.ID, error] {
	return func(yield func(cove.ID, error) bool) {
		names, err := d.names()
		if err == nil {
			err = ctx.Err()
		}
		for _, name := range names {
			if err != nil {
				break
			}
			id, ok := strings.CutSuffix(name, suffix)
			if ok && cove.ID(id).Valid() && !yield(cove.ID(id), nil) {
				return
			}
			err = ctx.Err()
		}
		if err != nil {
			yield("", fault(d.path, err))
		}
	}
}

// begin is what every call on one archive starts with.
func (d *Dir) begin(ctx context.Context, id cove.ID) (name string, err error) {
	if err := ctx.Err(); err != nil {
		return "", fault(d.path, err)
	}
	return nameOf(id)
}
