package spool

import (
	"errors"
	"io"
	"os"
	"sort"

	"github.com/cove-sandbox/cove"
)

// reader reads blocks on behalf of one caller. It has a file of its own, so that
// an ended log needs none.
type reader struct {
	log  *Log
	file *os.File
}

func (r *reader) close() {
	if r.file != nil {
		_ = r.file.Close()
	}
}

// load returns a block of the file as a block in memory.
func (r *reader) load(e entry) (block, error) {
	if r.file == nil {
		f, err := r.log.cfg.Root.Open(r.log.cfg.Name)
		if err != nil {
			return block{}, r.log.unreadable(err)
		}
		r.file = f
	}
	buf := make([]byte, e.runs+e.data)
	if _, err := r.file.ReadAt(buf, e.pos); err != nil {
		if errors.Is(err, io.EOF) {
			err = errDamaged
		}
		return block{}, r.log.unreadable(err)
	}
	return block{off: e.off, outs: e.outs, runs: buf[:e.runs], data: buf[e.runs:]}, nil
}

func (l *Log) unreadable(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return cove.Wrap(cove.NotFound, err, "the kept output %s is gone", l.cfg.Name)
	}
	return cove.Wrap(cove.Unavailable, err, "the kept output %s cannot be read: %s", l.cfg.Name, reasonOf(err))
}

func (l *Log) gone() error {
	return cove.Errorf(cove.NotFound, "the kept output %s was removed", l.cfg.Name)
}

// place is a block that holds a byte, or the first one after it: in the file or
// in memory.
type place struct {
	stored bool
	entry  entry
	view   block
}

// find returns the place of an offset. The caller holds mu. It is not ok where
// nothing lies at or after the offset yet.
func (l *Log) find(offset int64) (p place, ok bool) {
	i := sort.Search(len(l.index), func(i int) bool { return l.index[i].end() > offset })
	if i < len(l.index) {
		return place{stored: true, entry: l.index[i]}, true
	}
	for _, b := range []*block{&l.current, &l.recent[0], &l.recent[1]} {
		if b.end() > offset && len(b.data) > 0 {
			return place{view: b.view()}, true
		}
	}
	return place{}, false
}

// get returns the block at a place.
func (r *reader) get(p place) (block, error) {
	if p.stored {
		return r.load(p.entry)
	}
	return p.view, nil
}
