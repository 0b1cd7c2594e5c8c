//go:build linux

package guest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// files is the tree of the sandbox. The agent resolves every name inside; what
// is done to names here only makes them absolute.
type files struct{ c *Conn }

var _ cove.Files = files{}

// Files is the sandbox's file tree, seen as its own user.
func (c *Conn) Files() cove.Files { return files{c} }

// name makes a name absolute.
func (o Options) name(name string) (string, error) {
	switch {
	case name == "":
		return "", cove.InvalidField("path", "is empty")
	case len(name) >= protocol.MaxPath:
		return "", cove.InvalidField("path", "is %d bytes long; the most is %d", len(name), protocol.MaxPath-1)
	case strings.IndexByte(name, 0) >= 0:
		return "", cove.InvalidField("path", "holds a NUL byte")
	}
	if path.IsAbs(name) {
		return path.Clean(name), nil
	}
	abs := path.Join(o.Dir, name)
	if len(abs) >= protocol.MaxPath {
		return "", cove.InvalidField("path", "is %d bytes long; the most is %d", len(abs), protocol.MaxPath-1)
	}
	return abs, nil
}

// ask sends a request about one file and turns the answer into an error.
func (f files) ask(ctx context.Context, kind protocol.Kind, name string, req protocol.File, streams ...*protocol.Stream) (answer, error) {
	abs, err := f.c.opts.Load().name(name)
	if err == nil && kind == protocol.KindMove {
		req.To, err = f.c.opts.Load().name(req.To)
	}
	if err != nil {
		for _, s := range streams {
			s.Close()
		}
		return answer{}, err
	}
	req.Name = abs
	a, err := f.c.call(ctx, kind, req.Encode(), streams...)
	if err != nil {
		return a, err
	}
	if len(a.streams) > 0 && (kind != protocol.KindDial || !a.OK()) {
		for _, s := range a.streams {
			s.Close()
		}
		err := lost(errors.New("it attached what it was not asked for"))
		f.c.fail(err)
		return a, err
	}
	return a, fault(a.Reply, name)
}

// info turns what the agent says of a file into what a caller gets.
func info(i protocol.Entry) cove.FileInfo {
	mode := fs.FileMode(i.Mode & 0o777)
	switch i.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	}
	for bit, m := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if i.Mode&bit != 0 {
			mode |= m
		}
	}
	return cove.FileInfo{
		Path: i.Path, Size: cove.Bytes(i.Size), Mode: mode, Modified: time.Unix(0, i.Modified).UTC(), Link: i.Link,
		UID: int(i.UID), GID: int(i.GID), Meta: metaOf(i.Attrs),
	}
}

// Stat implements [cove.Files].
func (f files) Stat(ctx context.Context, name string) (cove.FileInfo, error) {
	a, err := f.ask(ctx, protocol.KindStat, name, protocol.File{})
	if err != nil {
		return cove.FileInfo{}, err
	}
	i, err := protocol.DecodeEntry(a.Body)
	if err != nil {
		err = lost(err)
		f.c.fail(err)
		return cove.FileInfo{}, err
	}
	return info(i), nil
}

// Mkdir implements [cove.Files].
func (f files) Mkdir(ctx context.Context, name string) error {
	_, err := f.ask(ctx, protocol.KindMkdir, name, protocol.File{})
	return err
}

// Move implements [cove.Files].
func (f files) Move(ctx context.Context, from, to string) error {
	_, err := f.ask(ctx, protocol.KindMove, from, protocol.File{To: to})
	return err
}

// Remove implements [cove.Files].
func (f files) Remove(ctx context.Context, name string) error {
	abs, err := f.c.opts.Load().name(name)
	if err != nil {
		return err
	}
	if abs == "/" || abs == f.c.opts.Load().Dir || strings.HasPrefix(f.c.opts.Load().Dir, abs+"/") {
		return cove.InvalidField("path", "the workspace itself cannot be removed; remove what is in it")
	}
	_, err = f.ask(ctx, protocol.KindRemove, abs, protocol.File{})
	return err
}

// open asks for a stream of records.
func (f files) open(ctx context.Context, kind protocol.Kind, name string, req protocol.File) (*source, error) {
	pipe, stream, err := protocol.Pipe(protocol.Writable)
	if err != nil {
		return nil, pipeFault(err)
	}
	if _, err := f.ask(ctx, kind, name, req, stream); err != nil {
		_ = pipe.Close()
		return nil, err
	}
	return f.source(ctx, name, pipe), nil
}

// source is a stream of records that an agent writes.
type source struct {
	c    *Conn
	ctx  context.Context //nolint:containedctx // a stream lives as long as the call that opened it
	name string
	pipe *os.File
	in   *protocol.RecordReader
	stop func()
}

// source reads what an agent writes into pipe until ctx is done or this host leaves: an
// agent that lives on may keep its end open.
func (f files) source(ctx context.Context, name string, pipe *os.File) *source {
	s := &source{c: f.c, ctx: ctx, name: name, pipe: pipe, in: protocol.NewRecordReader(pipe)}
	done := context.AfterFunc(ctx, s.interrupt)
	ended := context.AfterFunc(f.c.ended, func() {
		if f.c.hasLeft() {
			s.interrupt()
		}
	})
	s.stop = func() { _, _ = done(), ended() }
	return s
}

func (s *source) interrupt() { _ = s.pipe.SetReadDeadline(time.Unix(1, 0)) }

func (s *source) close() {
	s.stop()
	_ = s.pipe.Close()
}

// next returns the next record; [io.EOF] is the proper end.
func (s *source) next() (protocol.RecordKind, []byte, error) {
	kind, b, err := s.in.Next()
	switch {
	case err != nil:
		if s.ctx.Err() != nil {
			return 0, nil, s.ctx.Err()
		}
		if over := s.c.over(); over != nil && s.c.hasLeft() {
			return 0, nil, over
		}
		if errors.Is(err, os.ErrClosed) {
			return 0, nil, err
		}
		return 0, nil, cove.Wrap(cove.Unavailable, err, "%.200q: the stream from the sandbox broke; try again", s.name)
	case kind == protocol.RecordEnd:
		if err := s.ctx.Err(); err != nil { // the pipe may not have been interrupted yet
			return 0, nil, err
		}
		return 0, nil, io.EOF
	case kind == protocol.RecordFailed:
		r, err := protocol.DecodeReply(b)
		if err != nil || r.OK() {
			r = protocol.Reply{Reason: protocol.ReasonUnknown}
		}
		name := s.name
		if r.Text != "" {
			name = path.Join(name, r.Text)
		}
		return 0, nil, fault(r, name)
	}
	return kind, b, nil
}

// Read implements [cove.Files].
func (f files) Read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if offset < 0 || length < 0 {
		return nil, cove.InvalidField("range", "offset %d and length %d cannot be negative", offset, length)
	}
	s, err := f.open(ctx, protocol.KindRead, name, protocol.File{Offset: offset, Length: length})
	if err != nil {
		return nil, err
	}
	return &content{source: s}, nil
}

// content is the content of one file.
type content struct {
	*source

	rest []byte
	err  error
}

// Read implements [io.Reader].
func (r *content) Read(b []byte) (int, error) {
	for len(r.rest) == 0 && r.err == nil {
		var kind protocol.RecordKind
		kind, r.rest, r.err = r.next()
		if r.err == nil && kind != protocol.RecordData {
			r.err = cove.Errorf(cove.Unavailable, "%.200q: the sandbox sent nonsense", r.name)
		}
	}
	if r.err != nil {
		return 0, r.err
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close implements [io.Closer].
func (r *content) Close() error {
	r.close()
	return nil
}

// List implements [cove.Files].
func (f files) List(ctx context.Context, dir string, depth int) iter.Seq2[cove.FileInfo, error] {
	return func(yield func(cove.FileInfo, error) bool) {
		if depth < 1 || depth > cove.MaxListDepth {
			yield(cove.FileInfo{}, cove.InvalidField("depth", "%d is out of range; use 1 to %d", depth, cove.MaxListDepth))
			return
		}
		s, err := f.open(ctx, protocol.KindList, dir, protocol.File{Depth: depth})
		if err != nil {
			yield(cove.FileInfo{}, err)
			return
		}
		defer s.close()
		for {
			i, err := s.info()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(info(i), err) || err != nil {
				return
			}
		}
	}
}

// info returns the next description.
func (s *source) info() (protocol.Entry, error) {
	kind, b, err := s.next()
	if err != nil {
		return protocol.Entry{}, err
	}
	i, err := protocol.DecodeEntry(b)
	if kind != protocol.RecordFile || err != nil {
		return i, cove.Wrap(cove.Unavailable, err, "%.200q: the sandbox sent nonsense", s.name)
	}
	return i, nil
}
