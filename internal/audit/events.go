package audit

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"sort"

	"github.com/cove-sandbox/cove"
)

// Events yields the lines that f selects, in order, and never keeps a writer
// waiting. Without f.Follow it ends with the line that was the last when it
// began. With it, the iteration ends without an error when ctx does, and with
// one when the journal is closed. It does not check the chain: [Verify] does.
func (j *Journal) Events(ctx context.Context, f cove.EventFilter) iter.Seq2[cove.Event, error] {
	return func(yield func(cove.Event, error) bool) {
		if f.After == 0 && f.Tail > 0 {
			last, _, _ := j.position()
			f.After = max(0, last.seq-int64(f.Tail))
		}
		out := &selection{filter: f, yield: yield}
		c, err := openCursor(j.root, f.After)
		if err != nil {
			out.fail(j.unreadable(err))
			return
		}
		defer c.close()
		err = j.follow(ctx, c, out)
		if f.Follow && ctx.Err() != nil {
			return
		}
		if err != nil {
			out.fail(j.unreadable(err))
		}
	}
}

// follow hands out what there is, and with Follow also what comes. It returns nil
// when the caller has all that it wants.
func (j *Journal) follow(ctx context.Context, c *cursor, out *selection) error {
	for {
		until, changed, closed := j.position()
		more, err := out.drain(ctx, c, until, !out.filter.Follow)
		switch {
		case !more || err != nil || !out.filter.Follow:
			return err
		case closed:
			return cove.Errorf(cove.Unavailable, "the journal at %s is closed", j.cfg.Dir)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// position returns the last line, and a channel that is closed when there is
// another one or the journal is closed.
func (j *Journal) position() (head mark, changed <-chan struct{}, closed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.changed == nil && !j.closed {
		j.changed = make(chan struct{})
	}
	return j.head, j.changed, j.closed
}

func (j *Journal) unreadable(err error) error { return unreadable(j.cfg.Dir, err) }

func unreadable(dir string, err error) error {
	if _, ok := errors.AsType[*cove.Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return cove.Wrap(cove.CodeOf(err), err, "the reading of the journal ended early")
	}
	return cove.Wrap(cove.Unavailable, err, "the journal at %s cannot be read: %s", dir, reasonOf(err)).
		Remedy("run `cove audit verify`")
}

// Read yields the lines of a journal that f selects, up to the last that was
// whole when it began. It needs neither the key nor the lock, so it works beside
// a process that writes. It cannot follow.
func Read(ctx context.Context, dir string, f cove.EventFilter) iter.Seq2[cove.Event, error] {
	return func(yield func(cove.Event, error) bool) {
		out := &selection{filter: f, yield: yield}
		if f.Follow {
			out.fail(cove.InvalidField("follow", "needs the process that writes the journal; ask the running server"))
			return
		}
		if f.Tail > 0 {
			out.fail(cove.InvalidField("tail", "needs the process that writes the journal, which knows its end; ask the running server"))
			return
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			out.fail(noJournal(dir, err))
			return
		}
		defer root.Close() //nolint:errcheck // only read
		if err := out.read(ctx, root); err != nil {
			out.fail(unreadable(dir, err))
		}
	}
}

// noJournal tells a journal that is not there from one that cannot be read.
func noJournal(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return cove.Wrap(cove.NotFound, err, "there is no journal at %s", dir)
	}
	return unreadable(dir, err)
}

// selection hands out the lines that a filter selects.
type selection struct {
	filter cove.EventFilter
	yield  func(cove.Event, error) bool
	sent   int
	ended  bool // the caller wants no more
}

func (s *selection) wants() bool {
	return !s.ended && (s.filter.Limit <= 0 || s.sent < s.filter.Limit)
}

func (s *selection) fail(err error) {
	if !s.ended {
		s.ended = true
		s.yield(cove.Event{}, err)
	}
}

func (s *selection) read(ctx context.Context, root *os.Root) error {
	segments, err := listSegments(root)
	if err != nil || len(segments) == 0 {
		return err
	}
	until := mark{segment: segments[len(segments)-1]}
	info, err := root.Stat(segmentName(until.segment))
	if err != nil {
		return err
	}
	until.end = info.Size()
	c, err := openCursor(root, s.filter.After)
	if err != nil {
		return err
	}
	defer c.close()
	_, err = s.drain(ctx, c, until, true)
	return err
}

// drain hands out all whole lines up to a place, or, unless stop, also those that
// came since. More is false when the caller wants no more.
func (s *selection) drain(ctx context.Context, c *cursor, until mark, stop bool) (more bool, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if stop && (c.segment > until.segment || c.segment == until.segment && c.pos() >= until.end) {
			return true, nil
		}
		line, err := c.next(until.segment)
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if seq := seqOf(line); seq > 0 && seq <= s.filter.After {
			continue
		}
		r, err := decodeLine(line)
		if err != nil {
			return false, err
		}
		if !s.filter.Match(&r.Event) {
			continue
		}
		s.sent++
		if s.ended = !s.yield(r.Event, nil); !s.wants() {
			return false, nil
		}
	}
}

// cursor reads the lines of a journal across its segments.
type cursor struct {
	root    *os.Root
	segment int
	file    *os.File
	lines   *lineReader
}

// openCursor opens the segment that the line after a number is in.
func openCursor(root *os.Root, after int64) (*cursor, error) {
	segments, err := listSegments(root)
	if err != nil {
		return nil, err
	}
	if len(segments) == 0 {
		return nil, errors.New("its segments are missing")
	}
	beyond := sort.Search(len(segments), func(i int) bool {
		return firstSeq(root, segments[i])-1 > after
	})
	c := &cursor{root: root}
	return c, c.open(segments[max(beyond-1, 0)])
}

// firstSeq returns the highest number for a segment without a line that can be
// read, so that the search goes on before it and the reader meets the trouble.
func firstSeq(root *os.Root, segment int) int64 {
	f, err := root.Open(segmentName(segment))
	if err != nil {
		return math.MaxInt64
	}
	defer f.Close() //nolint:errcheck // only read
	start := make([]byte, 64)
	n, _ := io.ReadFull(f, start)
	if seq := seqOf(start[:n]); seq > 0 {
		return seq
	}
	return math.MaxInt64
}

func (c *cursor) open(segment int) error {
	f, err := c.root.Open(segmentName(segment))
	if err != nil {
		return err
	}
	c.close()
	c.file, c.segment, c.lines = f, segment, newLineReader(f, 0)
	return nil
}

func (c *cursor) pos() int64 { return c.lines.pos }

// next returns the next line, or io.EOF where there is none yet. Segments before
// the current one are known to be complete.
func (c *cursor) next(current int) ([]byte, error) {
	for {
		line, err := c.lines.next()
		if !errors.Is(err, io.EOF) || c.segment >= current {
			return line, err
		}
		if c.lines.pending > 0 {
			return nil, errLine
		}
		if err := c.open(c.segment + 1); err != nil {
			return nil, err
		}
	}
}

func (c *cursor) close() {
	if c.file != nil {
		_ = c.file.Close()
	}
}
