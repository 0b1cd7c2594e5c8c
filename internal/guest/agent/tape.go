//go:build linux

package agent

import (
	"bytes"
	"math"
	"sync"
	"time"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// Bounds on what is remembered.
const (
	blockBytes = 64 << 10
	// recentBlocks is how much of the newest output there is beside the first.
	recentBlocks = 4
	// tapes is how many full ones may fill the memory that is there for all.
	tapes = 4
	// maxFollowers bounds those of one program.
	maxFollowers = 16
)

// stallTime is how long who follows may hold a program up without reading.
const stallTime = 10 * time.Second

const forever = time.Duration(math.MaxInt64)

// room is the memory that all tapes share.
type room struct {
	mu   sync.Mutex
	used uint64
}

// take asks for a block of a tape that may have most bytes.
func (r *room) take(most uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used+blockBytes > tapes*most {
		return false
	}
	r.used += blockBytes
	return true
}

func (r *room) free(blocks int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= uint64(blocks) * blockBytes //nolint:gosec // as many as were taken
}

// block is a piece of a tape that begins and ends with a whole record. What is in
// it never changes.
type block struct {
	start  int64
	data   []byte
	before protocol.Lost // what the program wrote before it
	holds  protocol.Lost // and in it
}

// through is what the program wrote up to the end of the block.
func (b *block) through() protocol.Lost {
	return protocol.Lost{Stdout: b.before.Stdout + b.holds.Stdout, Stderr: b.before.Stderr + b.holds.Stderr}
}

func (b *block) end() int64 { return b.start + int64(len(b.data)) }

// tape remembers what a program writes, as records: the first of it up to a bound,
// and the newest. It is written by who reads the program's pipes, and read by
// followers.
type tape struct {
	room *room
	most uint64
	gone chan struct{} // closed when nobody wants it any more

	order sync.Mutex // who writes; taken before mu

	mu        sync.Mutex
	blocks    []block
	first     int // of the blocks, those that are never dropped
	full      bool
	closed    bool
	alone     bool // who follows is waited for as the reader of a pipe is
	followers map[*follower]bool
	whole     bool          // nothing is dropped that was not read, and what was marked is freed
	lost      bool          // something was that is not marked
	base      protocol.Lost // where marks count from
	marked    protocol.Lost // what is not wanted again
	due       *follower     // who had it made and will follow; nil when he does
	changed   chan struct{} // closed at the next change; nil if nobody waits
}

// follower is somebody who reads a tape.
type follower struct {
	at      int64
	stalled bool          // write does not wait for it
	told    protocol.Lost // what the program wrote up to the end of what it got
	lost    protocol.Lost // what of it the follower was not given since the last look
	skip    protocol.Lost // of the streams, at the beginning
}

// newTape returns one whose first follower is on his way: he is waited for as if he
// were there.
func newTape(r *room, most uint64) *tape {
	due := &follower{}
	return &tape{room: r, most: most, gone: make(chan struct{}), followers: map[*follower]bool{due: true}, due: due}
}

// wait returns what is closed at the next change. Called with mu held.
func (t *tape) wait() <-chan struct{} {
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.changed
}

// announce wakes who waits. Called with mu held.
func (t *tape) announce() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// write adds a record. It waits for followers who would miss something, as long as
// they read.
func (t *tape) write(kind protocol.RecordKind, b []byte) {
	t.order.Lock()
	defer t.order.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.blocks)
	if n == 0 || len(t.blocks[n-1].data)+len(b)+8 > blockBytes {
		t.turn()
		n = len(t.blocks)
	}
	last := &t.blocks[n-1]
	last.data = protocol.AppendRecord(last.data, kind, b)
	*streamOf(&last.holds, kind) += uint64(len(b))
	t.announce()
}

// streamOf is the count of the stream that a record is of.
func streamOf(of *protocol.Lost, kind protocol.RecordKind) *uint64 {
	if kind == protocol.RecordErrs {
		return &of.Stderr
	}
	return &of.Stdout
}

// within reports whether all of a is in b.
func within(a, b protocol.Lost) bool { return a.Stdout <= b.Stdout && a.Stderr <= b.Stderr }

// less is what of a is not in b.
func less(a, b protocol.Lost) protocol.Lost {
	return protocol.Lost{Stdout: a.Stdout - min(a.Stdout, b.Stdout), Stderr: a.Stderr - min(a.Stderr, b.Stderr)}
}

// written is all that the program wrote. Called with mu held.
func (t *tape) written() protocol.Lost { return t.fresh().before }

// mark frees what is not wanted again, block by block. From now on nothing else is
// dropped, unless it was read and there is no room for more.
func (t *tape) mark(out, errs int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.whole = true
	t.marked = protocol.Lost{Stdout: t.base.Stdout + uint64(out), Stderr: t.base.Stderr + uint64(errs)} //nolint:gosec // not negative
	if within(t.written(), t.marked) {
		t.lost = false // nothing is there that is not marked
	}
	n := 0
	for n < len(t.blocks) && within(t.blocks[n].through(), t.marked) {
		n++
	}
	if n == len(t.blocks) && n > 0 {
		// write appends to the last one.
		n--
		t.blocks[n] = t.fresh()
	}
	t.drop(n)
	t.announce()
}

// restart counts what is written from here on.
func (t *tape) restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.base, t.whole = t.written(), true
}

// drop frees the oldest blocks. Called with mu held.
func (t *tape) drop(n int) {
	freed := min(n, t.first)
	t.room.free(freed)
	t.first -= freed
	t.blocks = append([]block(nil), t.blocks[n:]...)
	t.full = false // turn asks again
}

// fresh is an empty block behind the last one. Called with mu held.
func (t *tape) fresh() (b block) {
	if n := len(t.blocks); n > 0 {
		b = block{start: t.blocks[n-1].end(), before: t.blocks[n-1].through()}
	}
	return b
}

// turn begins a block. Called with mu held.
func (t *tape) turn() {
	if !t.full {
		held := uint64(t.fresh().start) //nolint:gosec // not negative
		if t.whole {
			held = uint64(t.first) * blockBytes //nolint:gosec // not negative
		}
		t.full = held+blockBytes > t.most || !t.room.take(t.most)
	}
	if !t.full {
		t.first++
	} else if len(t.blocks)-t.first >= recentBlocks {
		t.pace(t.blocks[t.first].end())
	}
	if t.full && len(t.blocks)-t.first >= recentBlocks { // some may have been marked meanwhile
		t.lost = true
		t.blocks = append(t.blocks[:t.first:t.first], t.blocks[t.first+1:]...)
	}
	t.blocks = append(t.blocks, t.fresh())
}

// pace waits for who has not come to an offset, as long as he moves on. Called
// with mu held, which it gives up meanwhile.
func (t *tape) pace(offset int64) {
	for t.behind(offset) && !(t.whole && len(t.blocks)-t.first < recentBlocks) {
		changed := t.wait()
		patience := stallTime
		if t.alone || t.whole {
			patience = forever
		}
		t.mu.Unlock()
		late := time.NewTimer(patience)
		stalled := false
		select {
		case <-changed:
		case <-t.gone:
			stalled = true
		case <-late.C:
			stalled = true
		}
		late.Stop()
		t.mu.Lock()
		for f := range t.followers {
			f.stalled = f.stalled || stalled && f.at < offset
		}
	}
}

func (t *tape) behind(offset int64) bool {
	if t.whole && len(t.followers) == 0 {
		return !t.isGone() // there will be one
	}
	for f := range t.followers {
		if f.at < offset && !f.stalled {
			return true
		}
	}
	return false
}

func (t *tape) isGone() bool {
	select {
	case <-t.gone:
		return true
	default:
		return false
	}
}

// close says that nothing is written any more.
func (t *tape) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.announce()
}

// forget frees the tape. It is called once.
func (t *tape) forget() {
	close(t.gone)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.room.free(t.first)
	t.first, t.blocks, t.full = 0, nil, true
}

// join lets somebody follow from the first byte on, unless too many do. He may be the
// only one who ever will.
func (t *tape) join(alone bool) *follower {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.alone = t.alone || alone
	if f := t.due; f != nil {
		t.due = nil
		return f
	}
	if len(t.followers) >= maxFollowers {
		return nil
	}
	f := &follower{}
	if t.whole {
		if t.lost {
			return nil
		}
		if len(t.blocks) > 0 {
			f.at, f.told = t.blocks[0].start, t.blocks[0].before
			f.skip = less(t.marked, f.told)
		}
	}
	t.followers[f] = true
	return f
}

// trim takes from records what a follower does not want.
func (f *follower) trim(b []byte) []byte {
	if f.skip == (protocol.Lost{}) {
		return b
	}
	var out []byte
	r := protocol.NewRecordReader(bytes.NewReader(b))
	for kind, data, err := r.Next(); err == nil; kind, data, err = r.Next() {
		skip := streamOf(&f.skip, kind)
		n := min(*skip, uint64(len(data)))
		*skip -= n
		if data = data[n:]; len(data) > 0 {
			out = protocol.AppendRecord(out, kind, data)
		}
	}
	return out
}

func (t *tape) leave(f *follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.followers, f)
	t.announce()
}

// next returns what a follower has not read yet. He who is told of no more has
// read all; without, his end or the tape's has come.
//
// What it was not given before that is told first, as a record.
func (t *tape) next(f *follower, over <-chan struct{}) (lost, b []byte, end, ok bool) {
	for {
		t.mu.Lock()
		b, end = t.after(f), t.closed
		if f.lost != (protocol.Lost{}) {
			lost, f.lost = protocol.AppendRecord(nil, protocol.RecordLost, f.lost.Encode()), protocol.Lost{}
		}
		changed := t.wait()
		t.mu.Unlock()
		if len(b) > 0 || end {
			return lost, b, len(b) == 0, true
		}
		select {
		case <-changed:
		case <-over:
			return nil, nil, false, false
		case <-t.gone:
			return nil, nil, false, false
		}
	}
}

// after returns what comes after a follower's place, which is moved if what was
// there is no more. Called with mu held.
func (t *tape) after(f *follower) []byte {
	for i := range t.blocks {
		if b := &t.blocks[i]; f.at < b.end() {
			if f.at < b.start {
				f.at = b.start
				f.lost = less(b.before, f.told)
			}
			f.told = b.through()
			return b.data[f.at-b.start:]
		}
	}
	return nil
}

// moved notes that a follower has read so many bytes.
func (t *tape) moved(f *follower, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.at += int64(n)
	t.announce()
}
