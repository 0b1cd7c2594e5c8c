package spool

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"slices"

	"github.com/cove-sandbox/cove"
)

const (
	magic      = "covespl1"
	trailerLen = 4 + 4 + len(magic)
	maxFooter  = 64 << 20
)

// footer is what another process needs to read a file.
type footer struct {
	Total   [2]int64       `json:"total"`
	Kept    [2]int64       `json:"kept"`
	Blocks  [][5]int64     `json:"blocks"` // off, outs, pos, runs, data
	Summary [2]cove.Output `json:"summary"`
	Failure string         `json:"failure,omitempty"`
}

// Persist writes what is in memory to the file, so that [Open] can read the log
// in another process, and frees the memory. The log must be closed; it can be
// read as before. When it fails, nothing is lost and it can be tried again.
// Persisting again does nothing.
func (l *Log) Persist() error {
	l.order.Lock()
	defer l.order.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.removed:
		return l.gone()
	case !l.closed:
		return cove.Errorf(cove.Conflict, "the output %s is still being written", l.cfg.Name)
	case l.saved:
		return nil
	}
	size := l.size
	index, err := l.save()
	if err != nil {
		l.size = size
		l.giveBack()
	}
	l.closeFile()
	if err != nil {
		return cove.Wrap(cove.Unavailable, err, "the output %s cannot be kept: %s", l.cfg.Name, reasonOf(err))
	}
	stdout, stderr := l.summarize()
	l.summary = &[2]cove.Output{stdout, stderr}
	l.index, l.saved = index, true
	l.current, l.recent, l.ends = block{}, [2]block{}, [2]capture{}
	return nil
}

// save writes the blocks in memory and the footer, and returns the new index.
func (l *Log) save() ([]entry, error) {
	index := slices.Clip(l.index)
	for _, b := range []*block{&l.current, &l.recent[0], &l.recent[1]} {
		if len(b.data) == 0 {
			continue
		}
		e, err := l.writeBlock(b, true)
		if err != nil {
			return nil, err
		}
		index = append(index, e)
	}
	if l.file == nil {
		if err := l.openFile(); err != nil {
			return nil, err
		}
	}
	end, err := l.footer(index)
	if err == nil {
		err = l.resize(l.size+int64(len(end)), true)
	}
	if err != nil {
		return nil, err
	}
	if _, err := l.file.WriteAt(end, l.size); err != nil {
		return nil, err
	}
	// The footer must be the end, whatever an earlier attempt left behind it.
	return index, l.file.Truncate(l.size + int64(len(end)))
}

func (l *Log) footer(index []entry) ([]byte, error) {
	f := footer{Total: l.total, Kept: l.kept, Blocks: make([][5]int64, 0, len(index))}
	for _, e := range index {
		f.Blocks = append(f.Blocks, [5]int64{e.off, e.outs, e.pos, int64(e.runs), int64(e.data)})
	}
	f.Summary[out], f.Summary[errs] = l.summarize()
	if l.failure != nil {
		f.Failure = cove.MessageOf(l.failure)
	}
	text, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("footer: %w", err)
	}
	sum := crc32.ChecksumIEEE(text)
	text = binary.LittleEndian.AppendUint32(text, uint32(len(text))) //nolint:gosec // far below 4 GiB
	text = binary.LittleEndian.AppendUint32(text, sum)
	return append(text, magic...), nil
}

// Open returns a log that [Log.Persist] wrote, to be read and removed. It is
// NotFound where there is none, and Unavailable where its file is damaged.
func Open(root *os.Root, name string) (*Log, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	l := New(Config{Root: root, Name: name})
	l.closed, l.saved, l.made = true, true, true
	if err := l.restore(); err != nil {
		return nil, l.unreadable(err)
	}
	return l, nil
}

func (l *Log) restore() error {
	f, err := l.cfg.Root.Open(l.cfg.Name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < int64(trailerLen) {
		return errDamaged
	}
	trailer := make([]byte, trailerLen)
	if _, err := f.ReadAt(trailer, info.Size()-int64(trailerLen)); err != nil {
		return err
	}
	length, sum := binary.LittleEndian.Uint32(trailer), binary.LittleEndian.Uint32(trailer[4:])
	start := info.Size() - int64(trailerLen) - int64(length)
	if string(trailer[8:]) != magic || start < 0 || length > maxFooter {
		return errDamaged
	}
	text := make([]byte, length)
	if _, err := f.ReadAt(text, start); err != nil {
		return err
	}
	var end footer
	if crc32.ChecksumIEEE(text) != sum || json.Unmarshal(text, &end) != nil {
		return errDamaged
	}
	return l.adopt(&end, start)
}

// adopt takes over a footer whose blocks must lie in the first size bytes.
func (l *Log) adopt(f *footer, size int64) error {
	l.total, l.kept, l.summary = f.Total, f.Kept, &f.Summary
	l.lines = [2]int64{f.Summary[out].Lines, f.Summary[errs].Lines}
	if f.Failure != "" {
		l.failure = cove.Errorf(cove.Unavailable, "%s", f.Failure)
	}
	for s := range l.kept {
		if l.kept[s] < 0 || l.kept[s] > l.total[s] {
			return errDamaged
		}
	}
	var off, outs int64
	for _, b := range f.Blocks {
		e := entry{off: b[0], outs: b[1], pos: b[2], runs: int(b[3]), data: int(b[4])}
		if e.off < off || e.outs < outs || e.outs > e.off || e.pos < 0 || e.pos > size ||
			b[3] < 0 || b[4] <= 0 || b[3] > size-e.pos || b[4] > size-e.pos-b[3] {
			return errDamaged
		}
		off, outs = e.end(), e.outs
		l.index = append(l.index, e)
	}
	if off > l.total[out]+l.total[errs] {
		return errDamaged
	}
	return nil
}
