package spool

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/cove-sandbox/cove"
)

// Log is the output of one program. Its methods are safe for concurrent use.
type Log struct {
	cfg    Config
	stdout writer
	stderr writer
	create func() (file, error)

	// order makes writers take turns, through storing, spilling and OnChunk. It is
	// taken before mu and is never held by readers.
	order sync.Mutex
	file  file  // nil before the first spill and after Close; guarded by order
	size  int64 // of the file; guarded by order
	made  bool  // the file exists; guarded by order

	mu       sync.Mutex
	total    [2]int64 // written; guarded by mu, as are all below
	lines    [2]int64 // newlines among them
	kept     [2]int64 // of these, the ones that Page can read
	index    []entry  // the blocks in the file
	current  block    // what follows them
	full     bool     // nothing more is kept: the cap is reached or the file failed
	recent   [2]block // what was written since, the older block first
	captured bool     // ends is in use; before that, current holds everything
	ends     [2]capture
	summary  *[2]cove.Output // after Persist; it replaces ends
	failure  error           // why output below the cap was not kept
	exceeded bool
	closed   bool
	removed  bool
	saved    bool          // the file has its footer
	changed  chan struct{} // closed at the next change; nil if nobody follows
}

// New returns an empty log. It cannot fail and makes no file yet.
func New(cfg Config) *Log {
	l := &Log{cfg: cfg.withDefaults()}
	l.stdout = writer{log: l, side: out}
	l.stderr = writer{log: l, side: errs}
	return l
}

// Writer returns where the program writes to. Its Write never fails: what cannot
// be kept is counted and dropped, and after Close everything is. The two streams
// may be written at the same time. It has a method Skip(n int64), for output that was
// dropped where it was kept before: it counts, and nothing after it is among what Page reads.
func (l *Log) Writer(s cove.Stream) io.Writer {
	if s == cove.Stderr {
		return &l.stderr
	}
	return &l.stdout
}

type writer struct {
	log  *Log
	side side
}

// Write stores a copy of p.
func (w *writer) Write(p []byte) (int, error) {
	if len(p) > 0 {
		w.log.write(w.side, p)
	}
	return len(p), nil
}

// Skip counts bytes that were written and dropped before they came here.
func (w *writer) Skip(n int64) {
	if n > 0 {
		w.log.skip(w.side, n)
	}
}

func (l *Log) skip(s side, n int64) {
	l.order.Lock()
	l.mu.Lock()
	passed := false
	if !l.closed {
		l.capture()
		l.ends[s].skip()
		l.total[s] += n
		l.full = true // what comes now does not follow on what is kept
		l.recent[0], l.recent[1] = l.recent[1], l.recent[0]
		l.recent[1].renew(l.total, l.window())
		passed = l.passed()
		l.announce()
	}
	l.mu.Unlock()
	l.order.Unlock()
	if passed && l.cfg.OnLimit != nil {
		l.cfg.OnLimit()
	}
}

// passed reports whether the limit was passed just now. The caller holds mu.
func (l *Log) passed() bool {
	limit := int64(l.cfg.Limit)
	if limit <= 0 || l.exceeded || l.total[out]+l.total[errs] <= limit {
		return false
	}
	l.exceeded = true
	return true
}

func (l *Log) write(s side, p []byte) {
	l.order.Lock()
	offset, passed, ok := l.store(s, p)
	if ok && l.cfg.OnChunk != nil {
		l.cfg.OnChunk(cove.Chunk{Stream: s.stream(), Offset: offset, Data: append([]byte(nil), p...)})
	}
	l.order.Unlock()
	if passed && l.cfg.OnLimit != nil {
		l.cfg.OnLimit()
	}
}

// store returns the offset of p, and whether p passed the limit. It is not ok
// when the log has ended.
func (l *Log) store(s side, p []byte) (offset int64, passed, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	offset = l.total[out] + l.total[errs]
	if l.closed {
		return offset, false, false
	}
	for len(p) > 0 {
		n := l.accept(len(p))
		if n == 0 {
			l.makeRoom()
			continue
		}
		l.keep(s, p[:n])
		p = p[n:]
	}
	passed = l.passed()
	l.announce()
	return offset, passed, true
}

// accept returns how many of n bytes there is room for right now.
func (l *Log) accept(n int) int {
	if l.full {
		return min(n, l.window()-len(l.recent[1].data))
	}
	below := int64(l.cfg.MaxBytes) - l.kept[out] - l.kept[errs]
	return int(min(int64(n), below, int64(l.cfg.MemoryBytes)-int64(len(l.current.data))))
}

// window is the size of one of the two blocks that hold the newest bytes.
func (l *Log) window() int { return max(int(l.cfg.MemoryBytes)/2, 1) }

// keep takes bytes that accept found room for.
func (l *Log) keep(s side, p []byte) {
	if l.full {
		l.recent[1].add(s, p)
	} else {
		l.current.add(s, p)
		l.kept[s] += int64(len(p))
	}
	if l.captured {
		l.ends[s].add(p, int(l.cfg.Budget))
	}
	l.total[s] += int64(len(p))
	l.lines[s] += int64(bytes.Count(p, newline))
}

var newline = []byte{'\n'}

// makeRoom is called when accept finds none.
func (l *Log) makeRoom() {
	l.capture()
	switch {
	case l.full:
		l.recent[0], l.recent[1] = l.recent[1], l.recent[0]
		l.recent[1].renew(l.total, l.window())
	case l.kept[out]+l.kept[errs] == int64(l.cfg.MaxBytes) || !l.spill():
		l.full = true
		l.recent[1].renew(l.total, l.window())
	}
}

// capture begins to hold the ends of the streams on their own, because current
// is about to stop being all there is.
func (l *Log) capture() {
	if l.captured {
		return
	}
	l.captured = true
	b := &l.current
	_ = b.each(func(s side, from, to int) bool { // runs that we made are never damaged
		l.ends[s].add(b.data[from:to], int(l.cfg.Budget))
		return true
	})
}

// announce wakes those who follow.
func (l *Log) announce() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// Close marks the end of the output. It waits for a Write under way; later ones
// are dropped. The output can be read as before. Closing again does nothing.
func (l *Log) Close() {
	l.order.Lock()
	defer l.order.Unlock()
	l.mu.Lock()
	l.closed = true
	l.announce()
	l.mu.Unlock()
	l.closeFile()
}

// Remove ends the log and frees its memory and its file. Followers and later
// readers get NotFound. Removing again does nothing.
func (l *Log) Remove() error {
	l.order.Lock()
	defer l.order.Unlock()
	l.mu.Lock()
	l.closed, l.removed = true, true
	l.index, l.current, l.recent, l.ends, l.summary = nil, block{}, [2]block{}, [2]capture{}, nil
	l.announce()
	l.mu.Unlock()
	l.closeFile()
	if !l.made {
		return nil
	}
	if err := l.cfg.Root.Remove(l.cfg.Name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return cove.Wrap(cove.Unavailable, err, "the kept output %s cannot be removed: %s", l.cfg.Name, reasonOf(err))
	}
	l.made = false
	return l.resize(0, true)
}

// Total returns how many bytes were written to both streams.
func (l *Log) Total() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total[out] + l.total[errs]
}

// Dropped returns how many of them [Log.Page] cannot read.
func (l *Log) Dropped() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total[out] + l.total[errs] - l.kept[out] - l.kept[errs]
}

// Exceeded reports whether more than Config.Limit was written.
func (l *Log) Exceeded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.exceeded
}

// Err says why less than Config.MaxBytes was kept, or returns nil.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}
