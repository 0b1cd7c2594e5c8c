package spool

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

// maxChunk bounds a chunk that a follower gets.
const maxChunk = 64 << 10

// Follow yields the output from an offset on, and goes on with what is written
// until the log is closed. Any number of callers may follow. A chunk's data must
// not be changed, and stays as it is. Where output was dropped before the caller
// could read it, the next chunk's Offset lies beyond the end of the one before.
//
// An offset below 0 or above [Log.Total] is Invalid. When ctx ends, the last
// thing yielded is its error; when the log is removed, NotFound.
func (l *Log) Follow(ctx context.Context, offset int64) iter.Seq2[cove.Chunk, error] {
	return l.follow(ctx, offset, nil)
}

// FollowAll is Follow from the first byte on. dropped is told how much of each stream
// is missing before the next chunk.
func (l *Log) FollowAll(ctx context.Context, dropped func(stdout, stderr int64)) iter.Seq2[cove.Chunk, error] {
	return l.follow(ctx, 0, dropped)
}

func (l *Log) follow(ctx context.Context, offset int64, dropped func(stdout, stderr int64)) iter.Seq2[cove.Chunk, error] {
	return func(yield func(cove.Chunk, error) bool) {
		f := follower{reader: reader{log: l}, offset: offset, dropped: dropped}
		defer f.close()
		err := f.check()
		for err == nil {
			var b block
			var more bool
			if b, more, err = f.wait(ctx); err != nil || !more {
				break
			}
			if more, err = f.emit(ctx, &b, yield); !more {
				return
			}
		}
		if err != nil {
			yield(cove.Chunk{}, err)
		}
	}
}

type follower struct {
	reader

	offset int64 // of the next byte
	walk   walk  // its run
	in     int64 // the offset of the block that walk is in, plus 1; 0 is none

	dropped func(stdout, stderr int64) // nil where the caller does not ask
	outs    int64                      // bytes of stdout before offset; right where the caller asks
}

func (f *follower) check() error {
	if total := f.log.Total(); f.offset < 0 || f.offset > total {
		return cove.InvalidField("offset", "%d is out of range; use 0 to %d", f.offset, total)
	}
	return nil
}

// wait returns the block that holds the next byte, once there is one. More is
// false at the end of a closed log.
func (f *follower) wait(ctx context.Context) (b block, more bool, err error) {
	for {
		p, changed, err := f.log.findOrWatch(f.offset)
		if err != nil {
			return block{}, false, err
		}
		if p != nil {
			b, err = f.get(*p)
			return b, true, err
		}
		if changed == nil {
			return block{}, false, nil
		}
		select {
		case <-ctx.Done():
			return block{}, false, ended(ctx)
		case <-changed:
		}
	}
}

func ended(ctx context.Context) error {
	return cove.Wrap(cove.CodeOf(ctx.Err()), ctx.Err(), "the output was no longer followed")
}

// findOrWatch returns the place of an offset, or a channel that is closed when
// looking again makes sense, or neither at the end.
func (l *Log) findOrWatch(offset int64) (*place, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.removed {
		return nil, nil, l.gone()
	}
	if p, ok := l.find(offset); ok {
		return &p, nil, nil
	}
	if l.closed {
		return nil, nil, nil
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return nil, l.changed, nil
}

// emit yields what a block holds from the offset on. More is false when the
// caller wants nothing more.
func (f *follower) emit(ctx context.Context, b *block, yield func(cove.Chunk, error) bool) (more bool, err error) {
	if f.in != b.off+1 {
		f.in, f.walk = b.off+1, walk{}
	}
	if gap := b.off - f.offset; gap > 0 {
		if f.dropped != nil {
			f.dropped(b.outs-f.outs, gap-(b.outs-f.outs))
		}
		f.offset, f.outs = b.off, b.outs
	}
	for f.offset < b.end() {
		if ctx.Err() != nil {
			return true, ended(ctx)
		}
		s, end, err := f.walk.run(b)
		if err != nil {
			return true, f.log.unreadable(err)
		}
		from := int(f.offset - b.off)
		if from >= end {
			f.walk.next(b, end)
			continue
		}
		to := min(end, from+maxChunk)
		if !yield(cove.Chunk{Stream: s.stream(), Offset: f.offset, Data: b.data[from:to:to]}, nil) {
			return false, nil
		}
		f.offset += int64(to - from)
		if s == out {
			f.outs += int64(to - from)
		}
	}
	return true, nil
}
