package archive

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/cove-sandbox/cove"
)

// Put implements cove.Archives. It replaces an older archive with the same id.
// A reader that fails is reported with the code of its error; a full disk is
// Exhausted. Either way the older archive is still there.
func (d *Dir) Put(ctx context.Context, id cove.ID, r io.Reader) (size cove.Bytes, err error) {
	name, err := d.begin(ctx, id)
	if err != nil {
		return 0, err
	}
	draft := draftName(id)
	f, err := d.root.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fault(d.path, err)
	}
	defer func() {
		// After the rename there is no draft, and what Remove says is no news.
		if e := d.root.Remove(draft); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, fault(d.path, e))
		}
	}()
	src := &source{ctx: ctx, r: r}
	out := &sealer{w: f}
	_, err = io.Copy(out, src)
	if src.err != nil {
		return 0, errors.Join(cutShort(id, src.err), f.Close())
	}
	if err == nil {
		_, err = f.Write(out.bytes(id))
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, fault(d.path, err)
	}
	if err := d.publish(draft, name); err != nil {
		return 0, fault(d.path, err)
	}
	return cove.Bytes(out.n), nil
}

// publish gives a finished draft its name, for good.
func (d *Dir) publish(draft, name string) error {
	if err := d.root.Rename(draft, name); err != nil {
		return err
	}
	dir, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// source reads until the context ends, and remembers why it stopped: io.Copy
// does not say which side failed.
type source struct {
	ctx context.Context //nolint:containedctx // of the one call that reads
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	if s.err = s.ctx.Err(); s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF { // a wrapped EOF is a stream that was cut short
		s.err = err
	}
	return n, err
}

func cutShort(id cove.ID, err error) error {
	return cove.Wrap(cove.CodeOf(err), err, "the files of %s could not be read to the end, so that no archive was made; try again", id)
}
