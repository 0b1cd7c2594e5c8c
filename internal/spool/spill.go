package spool

import (
	"errors"
	"io"
	"os"

	"github.com/cove-sandbox/cove"
)

// entry is a block in the file.
type entry struct {
	off, outs int64 // as in block
	pos       int64 // where in the file its runs begin; its data follows them
	runs      int   // how many bytes they take
	data      int
}

func (e entry) end() int64 { return e.off + int64(e.data) }

// file is what a log needs of the file that it writes.
type file interface {
	io.WriterAt
	Truncate(size int64) error
	Close() error
}

// spill moves current to the file, and reports whether that worked. It gives mu
// back while it writes: readers go on with the block in memory.
func (l *Log) spill() bool {
	b := l.current
	l.mu.Unlock()
	e, err := l.writeBlock(&b, false)
	l.mu.Lock()
	if err != nil {
		l.failure = cove.Wrap(cove.Unavailable, err, "output after the first %d bytes was not kept: %s", b.end(), reasonOf(err))
		return false
	}
	l.index = append(l.index, e)
	l.current.renew(l.total, int(l.cfg.MemoryBytes))
	return true
}

// writeBlock appends a block to the file, which it makes if need be. The caller
// holds order.
func (l *Log) writeBlock(b *block, must bool) (entry, error) {
	if err := l.resize(l.size+int64(len(b.runs)+len(b.data)), must); err != nil {
		return entry{}, err
	}
	if l.file == nil {
		if err := l.openFile(); err != nil {
			l.giveBack()
			return entry{}, err
		}
	}
	e := entry{off: b.off, outs: b.outs, pos: l.size, runs: len(b.runs), data: len(b.data)}
	_, err := l.file.WriteAt(b.runs, l.size)
	if err == nil {
		_, err = l.file.WriteAt(b.data, l.size+int64(e.runs))
	}
	if err != nil {
		l.giveBack()
		return entry{}, err
	}
	l.size += int64(e.runs + e.data)
	return e, nil
}

// resize asks for the room of a file of so many bytes.
func (l *Log) resize(size int64, must bool) error {
	if l.cfg.Resize == nil {
		return nil
	}
	return l.cfg.Resize(size, must)
}

// giveBack makes the file as long as what is known to be in it, on the disk and
// in the account.
func (l *Log) giveBack() {
	if l.file != nil {
		_ = l.file.Truncate(l.size) // gives back what the disk had left for it
	}
	_ = l.resize(l.size, true) // it does not grow
}

func (l *Log) openFile() (err error) {
	if l.cfg.Root == nil {
		return errors.New("there is no folder for it")
	}
	if err = checkName(l.cfg.Name); err != nil {
		return err
	}
	if l.create == nil {
		l.create = l.createFile
	}
	if l.file, err = l.create(); err != nil {
		l.file = nil
		return err
	}
	l.made = true
	return nil
}

func (l *Log) createFile() (file, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if l.made { // Persist opens again what Close closed
		flags = os.O_WRONLY
	}
	return l.cfg.Root.OpenFile(l.cfg.Name, flags, 0o600)
}

func (l *Log) closeFile() {
	if l.file != nil {
		_ = l.file.Close() // what was written was checked
		l.file = nil
	}
}

// reasonOf returns the text of a file error without the path and the system call.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err.Error()
	}
	if e, ok := errors.AsType[*cove.Error](err); ok {
		return e.Message
	}
	return err.Error()
}
