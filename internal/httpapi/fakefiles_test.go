package httpapi_test

import (
	"context"
	"io"
	"io/fs"
	"iter"

	"github.com/cove-sandbox/cove"
)

type fakeFiles struct {
	*fake
	id cove.ID
}

func (f fakeFiles) Stat(_ context.Context, name string) (cove.FileInfo, error) {
	info := filled[cove.FileInfo]()
	if f.size > 0 {
		info.Size, info.Mode = f.size, 0o644
	}
	return info, f.note(cove.FileStat, args(f.id, name), info)
}

func (f fakeFiles) Read(_ context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if f.read != nil {
		return f.read(offset, length)
	}
	return f.bytes(cove.FileRead, args(f.id, name, offset, length), "content\x00\xff")
}

// bytes is a method that answers with a stream.
func (f fakeFiles) bytes(verb cove.Verb, args []any, text string) (io.ReadCloser, error) {
	if err := f.note(verb, args, text); err != nil {
		return nil, err
	}
	return io.NopCloser(&slowText{text}), nil
}

// slowText comes a few bytes at a time.
type slowText struct{ rest string }

func (s *slowText) Read(p []byte) (int, error) {
	if s.rest == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(3, len(p))], s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (f fakeFiles) Write(ctx context.Context, name string, r io.Reader, mode fs.FileMode) error {
	if f.write != nil {
		return f.write(ctx, r)
	}
	return f.note(cove.FileWrite, args(f.id, name, drained(r), mode))
}

func (f fakeFiles) List(_ context.Context, dir string, depth int) iter.Seq2[cove.FileInfo, error] {
	return yields(f.fake, cove.FileList, args(f.id, dir, depth), func(v *cove.FileInfo, n int) {
		v.Path = "/workspace/" + string(numbered(n))
		if n == 2 {
			v.Path += "\xff"
		}
	})
}

func (f fakeFiles) Mkdir(_ context.Context, name string) error {
	return f.note(cove.FileMkdir, args(f.id, name))
}

func (f fakeFiles) Move(_ context.Context, from, to string) error {
	return f.note(cove.FileMove, args(f.id, from, to))
}

func (f fakeFiles) Remove(_ context.Context, name string) error {
	return f.note(cove.FileRemove, args(f.id, name))
}

func (f fakeFiles) Tag(_ context.Context, name string, meta map[string]string) error {
	return f.note(cove.FileTag, args(f.id, name, meta))
}

func (f fakeFiles) Archive(_ context.Context, dir string) (io.ReadCloser, error) {
	return f.bytes(cove.FileArchive, args(f.id, dir), "a tar\x00")
}

func (f fakeFiles) Unpack(_ context.Context, dir string, tar io.Reader) error {
	return f.note(cove.FileUnpack, args(f.id, dir, drained(tar)))
}

func (f fakeFiles) Watch(ctx context.Context, dir string) iter.Seq2[cove.Change, error] {
	if f.watch != nil {
		return f.watch(ctx)
	}
	return yields(f.fake, cove.FileWatch, args(f.id, dir), func(*cove.Change, int) {})
}
