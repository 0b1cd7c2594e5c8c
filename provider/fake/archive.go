package fake

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
)

// Archive implements [cove.Files]. The stream must be closed.
func (f files) Archive(ctx context.Context, dir string) (io.ReadCloser, error) {
	var top place
	err := f.do(ctx, dir, func(t *tree, abs string) error {
		fi, p, err := t.stat(abs, true)
		if err == nil && !fi.IsDir() {
			err = syscall.ENOTDIR
		}
		top = p
		return err
	})
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		out := tar.NewWriter(w)
		err := f.pack(ctx, out, top.abs, "")
		if err == nil {
			err = out.Close()
		}
		if err == nil {
			err = ctx.Err() // the reader may not have been stopped yet
		}
		_ = w.CloseWithError(err)
	}()
	stop := context.AfterFunc(ctx, func() { _ = r.CloseWithError(ctx.Err()) })
	return archiveReader{r, stop}, nil
}

type archiveReader struct {
	*io.PipeReader

	stop func() bool
}

func (a archiveReader) Close() error {
	a.stop()
	return a.PipeReader.Close()
}

// pack writes what is below a directory, names in order.
func (f files) pack(ctx context.Context, out *tar.Writer, dir, rel string) error {
	for i, err := range f.List(ctx, dir, 1) {
		if err != nil {
			return err
		}
		name := path.Join(rel, path.Base(i.Path))
		h := &tar.Header{Name: name, Mode: int64(i.Mode.Perm()), ModTime: i.Modified.Truncate(time.Second)}
		switch {
		case i.Mode.IsDir():
			h.Typeflag, h.Name = tar.TypeDir, name+"/"
			if err := out.WriteHeader(h); err != nil {
				return err
			}
			err = f.pack(ctx, out, i.Path, name)
		case i.Mode&fs.ModeSymlink != 0:
			h.Typeflag, h.Linkname = tar.TypeSymlink, i.Link
			err = out.WriteHeader(h)
		case i.Mode.IsRegular():
			h.Typeflag, h.Size = tar.TypeReg, int64(i.Size)
			err = f.packFile(ctx, out, i.Path, h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// packFile writes one file. It may change while it is read: what is missing at
// the end becomes zeros, since the header has promised a size.
func (f files) packFile(ctx context.Context, out *tar.Writer, abs string, h *tar.Header) error {
	r, err := f.Read(ctx, abs, 0, 0)
	if errors.Is(err, cove.NotFound) && !f.s.gone.Load() {
		return nil // removed since it was listed
	}
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.CopyN(out, r, h.Size)
	if errors.Is(err, io.EOF) {
		_, err = io.CopyN(out, zeros{}, h.Size-n)
	}
	if err != nil {
		return fmt.Errorf("archive %s: %w", abs, err)
	}
	return nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
