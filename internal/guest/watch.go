//go:build linux

package guest

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

var changes = map[protocol.ChangeKind]cove.Change{
	protocol.Created: {Kind: cove.Created}, protocol.Modified: {Kind: cove.Modified}, protocol.Removed: {Kind: cove.Removed}, protocol.Overflow: {Kind: cove.Overflow},
	protocol.Moved: {Kind: cove.Removed, Moved: true}, protocol.Attributes: {Kind: cove.Modified, Attributes: true},
}

// Watch implements [cove.Files].
func (f files) Watch(ctx context.Context, dir string) iter.Seq2[cove.Change, error] {
	return func(yield func(cove.Change, error) bool) {
		if ctx.Err() != nil {
			return
		}
		s, quit, err := f.follow(ctx, dir)
		if err != nil {
			if ctx.Err() == nil {
				yield(cove.Change{}, err)
			}
			return
		}
		defer quit()
		if !yield(cove.Change{Kind: cove.Watching}, nil) {
			return
		}
		for {
			c, err := s.change()
			if ctx.Err() != nil || errors.Is(err, io.EOF) {
				return
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// follow opens the stream of changes; quit tells the agent that nobody listens.
func (f files) follow(ctx context.Context, dir string) (s *source, quit func(), err error) {
	out, changes, err := protocol.Pipe(protocol.Writable)
	if err != nil {
		return nil, nil, pipeFault(err)
	}
	hold, stop, err := protocol.Pipe(protocol.Readable)
	if err != nil {
		_ = out.Close()
		changes.Close()
		return nil, nil, pipeFault(err)
	}
	if _, err := f.ask(ctx, protocol.KindWatch, dir, protocol.File{}, changes, stop); err != nil {
		_, _ = out.Close(), hold.Close()
		return nil, nil, err
	}
	s = f.source(ctx, dir, out)
	return s, func() {
		s.close()
		_ = hold.Close()
	}, nil
}

func (s *source) change() (cove.Change, error) {
	kind, b, err := s.next()
	if err != nil {
		return cove.Change{}, err
	}
	c, err := protocol.DecodeChange(b)
	if err != nil || kind != protocol.RecordChange {
		return cove.Change{}, cove.Wrap(cove.Unavailable, err, "%.200q: the sandbox sent nonsense", s.name)
	}
	told := changes[c.Kind]
	told.Path = c.Path
	return told, nil
}
