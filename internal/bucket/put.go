package bucket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"time"

	"github.com/cove-sandbox/cove"
)

// writeTime is how long a node may take from naming a blob to referring to it.
// Together with slotLength it is less than tooOld, by enough for what is slow on
// its way to the store.
const writeTime = 25 * time.Minute

// Put implements cove.Archives. It replaces an older archive with the same id. A
// reader that fails is reported with the code of its error; one that is longer than
// the store takes, and a full disk, are Exhausted. In all cases the older archive is
// still there.
func (a *Archives) Put(ctx context.Context, id cove.ID, r io.Reader) (_ cove.Bytes, err error) {
	name, err := a.begin(ctx, id)
	if err != nil {
		return 0, err
	}
	f, err := a.spool()
	if err != nil {
		return 0, fault(a.dir, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	src := &source{ctx: ctx, r: r}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(src, a.most))
	if err == nil && n == a.most && !ended(src) {
		err = cove.Errorf(cove.Exhausted, "the files of %s are more than the archives take: %s", id, cove.Bytes(a.most)).
			Remedy("remove files from the workspace")
	}
	switch {
	case src.err != nil:
		return 0, cutShort(id, src.err)
	case err != nil:
		return 0, fault(a.dir, err)
	}
	if err := a.keep(ctx, id, name, content{f, n, hex.EncodeToString(sum.Sum(nil))}); err != nil {
		return 0, err
	}
	return cove.Bytes(n), nil
}

// keep stores content, unless it is there, and then refers to it.
func (a *Archives) keep(ctx context.Context, id cove.ID, name string, c content) error {
	timed, cancel := context.WithTimeoutCause(ctx, writeTime, errSlow)
	defer cancel()
	now, err := a.objects.now(timed)
	if err != nil {
		return a.late(timed, err)
	}
	b := nameBlob(c.digest, now)
	size, err := a.objects.stat(timed, b.path())
	if errors.Is(err, errMissing) || err == nil && size != c.size {
		err = a.objects.put(timed, b.path(), c)
	}
	if err == nil {
		err = a.objects.put(timed, name, reference{b, c.size, id}.content())
	}
	return a.late(timed, err)
}

var errSlow = errors.New("the archive took too long to write")

// late says that it was our own time that ran out, and not the caller's.
func (a *Archives) late(ctx context.Context, err error) error {
	if err == nil || !errors.Is(context.Cause(ctx), errSlow) {
		return err
	}
	return cove.Wrap(cove.Unavailable, err, "%s did not take the archive within %s", a.objects.about(), writeTime).
		Remedy("see what makes the way to it slow, and try again")
}

// spool makes a file that is gone with its descriptor, also when this process is
// killed.
func (a *Archives) spool() (*os.File, error) {
	name := string(cove.NewID()) + ".spool"
	f, err := a.scratch.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := a.scratch.Remove(name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
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

// ended reports whether nothing comes after the bound.
func ended(s *source) bool {
	n, _ := io.ReadFull(s, make([]byte, 1))
	return n == 0
}

func cutShort(id cove.ID, err error) error {
	return cove.Wrap(cove.CodeOf(err), err, "the files of %s could not be read to the end, so that no archive was made; try again", id)
}
