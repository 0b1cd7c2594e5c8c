package spool

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cove-sandbox/cove"
)

// side is a stream as a number: runs alternate between the two.
type side uint8

const (
	out side = iota
	errs
)

func (s side) stream() cove.Stream {
	if s == errs {
		return cove.Stderr
	}
	return cove.Stdout
}

// block is a piece of output in memory. Bytes are only ever added at its end, so
// a copy of the struct is a view that stays right without a lock, as long as
// nobody uses the buffers for another block.
type block struct {
	off    int64  // bytes of both streams before it
	outs   int64  // bytes of stdout before it
	data   []byte // of both streams, as they came
	runs   []byte // the lengths of all runs but the last; see the package comment
	side   side   // the stream of the last run
	last   int    // where in data that begins
	shared bool   // somebody has a view of the buffers
}

func (b *block) end() int64 { return b.off + int64(len(b.data)) }

func (b *block) add(s side, p []byte) {
	if s != b.side {
		b.runs = binary.AppendUvarint(b.runs, uint64(len(b.data)-b.last)) //nolint:gosec // last is within data
		b.side, b.last = s, len(b.data)
	}
	b.data = append(b.data, p...)
}

// renew begins a new block in the old one's buffers, unless somebody reads them.
func (b *block) renew(total [2]int64, size int) {
	data, runs := b.data[:0], b.runs[:0]
	if b.shared || cap(data) == 0 {
		data, runs = make([]byte, 0, size), nil
	}
	*b = block{off: total[out] + total[errs], outs: total[out], data: data, runs: runs}
}

// view returns what is in the block now.
func (b *block) view() block {
	b.shared = true
	v := *b
	v.data = slices.Clip(b.data)
	return v
}

var errDamaged = errors.New("the file of the kept output is damaged")

// walk is a place in the runs of a block. It goes forward only, and can be used
// on a later view of the same block.
type walk struct {
	used int  // bytes of runs that lie behind
	pos  int  // where in data the run begins
	side side // and whose it is
}

// run returns the run at the place: its stream and where it ends.
func (w *walk) run(b *block) (s side, end int, err error) {
	if w.used == len(b.runs) {
		return w.side, len(b.data), nil
	}
	n, k := binary.Uvarint(b.runs[w.used:])
	if k <= 0 || n > uint64(len(b.data)-w.pos) { //nolint:gosec // pos is within data
		return 0, 0, errDamaged
	}
	return w.side, w.pos + int(n), nil //nolint:gosec // checked above
}

// next goes to the run after this one; ok is false if this is the last.
func (w *walk) next(b *block, end int) (ok bool) {
	if w.used == len(b.runs) {
		return false
	}
	_, k := binary.Uvarint(b.runs[w.used:])
	w.used += k
	w.pos = end
	w.side ^= 1
	return true
}

// each calls f with every run that is not empty, until f returns false.
func (b *block) each(f func(s side, from, to int) bool) error {
	var w walk
	for {
		s, end, err := w.run(b)
		if err != nil {
			return err
		}
		if w.pos < end && !f(s, w.pos, end) || !w.next(b, end) {
			return nil
		}
	}
}
