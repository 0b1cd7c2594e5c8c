package fake

import (
	"crypto/rand"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// stream is what a descriptor leads to. A call on behalf of a process returns
// errDead as soon as that process has ended.
type stream interface {
	read(p *proc, b []byte) (int, error)
	write(p *proc, b []byte) (int, error)
	close()
}

// file is an open stream; it is closed with its last descriptor.
type file struct {
	stream

	refs atomic.Int32
}

func newFile(s stream) *file {
	f := &file{stream: s}
	f.refs.Store(1)
	return f
}

func (f *file) retain() *file {
	f.refs.Add(1)
	return f
}

func (f *file) release() {
	if f.refs.Add(-1) == 0 {
		f.close()
	}
}

// table holds the descriptors of a process, 0 to 9.
type table [10]*file

// clone returns a table that keeps the same files open once more.
func (t *table) clone() table {
	for _, f := range t {
		if f != nil {
			f.retain()
		}
	}
	return *t
}

// set puts a file, which the table then owns, in the place of another.
func (t *table) set(fd int, f *file) {
	if t[fd] != nil {
		t[fd].release()
	}
	t[fd] = f
}

func (t *table) release() {
	for fd := range t {
		t.set(fd, nil)
	}
}

// device opens a file of /dev for a process.
type device func(p *proc) (*file, error)

func devices() map[string]device {
	own := func(fd int) device {
		return func(p *proc) (*file, error) {
			if f := p.descriptor(fd); f != nil {
				return f.retain(), nil
			}
			return nil, syscall.EBADF
		}
	}
	fixed := func(s stream) device {
		return func(*proc) (*file, error) { return newFile(s), nil }
	}
	return map[string]device{
		"null": fixed(null{}), "zero": fixed(zero{}), "full": fixed(full{}),
		"random": fixed(random{}), "urandom": fixed(random{}),
		"stdin": own(0), "stdout": own(1), "stderr": own(2),
		"tty": func(p *proc) (*file, error) {
			if p.job.tty == nil {
				return nil, syscall.ENXIO
			}
			return newFile(p.job.tty), nil
		},
	}
}

// null is /dev/null.
type null struct{}

func (null) read(*proc, []byte) (int, error)      { return 0, io.EOF }
func (null) write(_ *proc, b []byte) (int, error) { return len(b), nil }
func (null) close()                               {}

// zero is /dev/zero.
type zero struct{ null }

func (zero) read(_ *proc, b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// full is /dev/full.
type full struct{ zero }

func (full) write(*proc, []byte) (int, error) { return 0, syscall.ENOSPC }

// random is /dev/urandom.
type random struct{ null }

func (random) read(_ *proc, b []byte) (int, error) { return rand.Read(b) }

// text is a stream to read only, such as a here-document.
type text struct {
	null

	mu   sync.Mutex
	from *strings.Reader // guarded by mu
}

func newText(s string) *file { return newFile(&text{from: strings.NewReader(s)}) }

func (t *text) read(_ *proc, b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.from.Read(b)
}
