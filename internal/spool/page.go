package spool

import (
	"sort"

	"github.com/cove-sandbox/cove"
)

const (
	defaultPage = 64 << 10
	maxPage     = 1 << 20
)

// Page returns a part of the kept output: that of one stream, or of both in the
// order written. Next is −1 where nothing more is kept for now; of a program that
// still runs, the next page then begins at Offset plus the length of Data.
//
// With Grep, Data holds the lines that match, each with a newline at its end, and
// Offset and Next still count the bytes of what was searched. Lines begin at
// Offset; of a line longer than 64 KiB only that much is searched and returned.
// A line that does not fit into the limit is cut if it is the only one. A page
// may end before the limit, even with no data, when 16 MiB have been searched.
//
// A range that makes no sense is Invalid; after Remove everything is NotFound.
func (l *Log) Page(r cove.OutputRange) (*cove.OutputPage, error) {
	take, err := newSelector(r)
	if err != nil {
		return nil, err
	}
	kept, written, err := l.sizes(r.Stream)
	if err != nil {
		return nil, err
	}
	if r.Offset < 0 || r.Offset > kept {
		return nil, cove.InvalidField("offset", "%d is out of range; use 0 to %d", r.Offset, kept)
	}
	in := reader{log: l}
	defer in.close()
	if err := in.scan(r.Stream, r.Offset, kept, take); err != nil {
		return nil, err
	}
	page := &cove.OutputPage{Offset: r.Offset, Total: kept, Dropped: written - kept}
	page.Data, page.Next = take.result()
	if page.Next >= kept {
		page.Next = -1
	}
	return page, nil
}

// sizes returns how much is kept and how much was written of what is selected.
func (l *Log) sizes(s cove.Stream) (kept, written int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.removed {
		return 0, 0, l.gone()
	}
	switch s {
	case cove.Stdout:
		return l.kept[out], l.total[out], nil
	case cove.Stderr:
		return l.kept[errs], l.total[errs], nil
	}
	return l.kept[out] + l.kept[errs], l.total[out] + l.total[errs], nil
}

// selector takes bytes in order and picks those that a page shows.
type selector interface {
	// add returns false when the page is complete.
	add(p []byte) bool
	// result is asked once, at the end.
	result() (data []byte, next int64)
}

func newSelector(r cove.OutputRange) (selector, error) {
	if s := r.Stream; s != "" && s != cove.Stdout && s != cove.Stderr {
		return nil, cove.InvalidField("stream", "%.40q is unknown; use stdout, stderr or nothing for both", string(s))
	}
	limit := r.Limit
	if limit == 0 {
		limit = defaultPage
	}
	if limit < 0 || limit > maxPage {
		return nil, cove.InvalidField("limit", "%d is out of range; use 1 to %d", r.Limit, maxPage)
	}
	if r.Grep != "" {
		return newGrep(r.Grep, r.Offset, int(limit))
	}
	return &plain{next: r.Offset, limit: int(limit)}, nil
}

// plain takes everything up to a limit.
type plain struct {
	data  []byte
	next  int64
	limit int
}

func (p *plain) add(b []byte) bool {
	b = b[:min(len(b), p.limit-len(p.data))]
	p.data = append(p.data, b...)
	p.next += int64(len(b))
	return len(p.data) < p.limit
}

func (p *plain) result() ([]byte, int64) { return p.data, p.next }

// scan hands the kept bytes of what is selected to take, from an offset to an
// end that are both counted in these.
func (r *reader) scan(stream cove.Stream, offset, end int64, take selector) error {
	for offset < end {
		p, err := r.log.findSelected(stream, offset)
		if err != nil {
			return err
		}
		b, err := r.get(p)
		if err != nil {
			return err
		}
		start, was, full := before(stream, b.off, b.outs), offset, false
		err = b.each(func(s side, from, to int) bool {
			if stream != "" && s.stream() != stream {
				return true
			}
			piece := b.data[from:to]
			skip := min(max(offset-start, 0), int64(len(piece)))
			start += int64(len(piece))
			piece = piece[skip:]
			piece = piece[:min(int64(len(piece)), end-offset)]
			offset += int64(len(piece))
			full = len(piece) > 0 && !take.add(piece)
			return !full && offset < end
		})
		if err == nil && offset == was {
			err = errDamaged // the index promised more
		}
		if err != nil {
			return r.log.unreadable(err)
		}
		if full {
			return nil
		}
	}
	return nil
}

// before returns how much of what is selected lies before a block.
func before(stream cove.Stream, off, outs int64) int64 {
	switch stream {
	case cove.Stdout:
		return outs
	case cove.Stderr:
		return off - outs
	}
	return off
}

// findSelected returns the place of a kept byte of what is selected: the last
// block that begins at or before it. Blocks with nothing of a stream begin where
// the next one does.
func (l *Log) findSelected(stream cove.Stream, offset int64) (place, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.removed {
		return place{}, l.gone()
	}
	if c := &l.current; len(c.data) > 0 && before(stream, c.off, c.outs) <= offset {
		return place{view: c.view()}, nil
	}
	after := sort.Search(len(l.index), func(i int) bool {
		return before(stream, l.index[i].off, l.index[i].outs) > offset
	})
	if after == 0 {
		return place{}, l.unreadable(errDamaged)
	}
	return place{stored: true, entry: l.index[after-1]}, nil
}
