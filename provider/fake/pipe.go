package fake

import (
	"io"
	"sync"
	"syscall"
)

// pipeSize is how much a pipe holds before its writer waits, as in Linux.
const pipeSize = 64 << 10

// pipe joins two processes.
type pipe struct {
	mu      sync.Mutex
	buf     []byte
	changed chan struct{} // closed at every change
	noRead  bool
	noWrite bool
}

func newPipe() (r, w *file) {
	p := &pipe{changed: make(chan struct{})}
	return newFile(pipeReader{p}), newFile(pipeWriter{p})
}

// wake lets everybody look again. Called with mu held.
func (p *pipe) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// await calls try under the lock until it says done, or who has ended.
func (p *pipe) await(who *proc, try func() (done bool)) error {
	for {
		p.mu.Lock()
		done := try()
		changed := p.changed
		p.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-who.dead:
			return errDead
		}
	}
}

type pipeReader struct{ p *pipe }

func (r pipeReader) read(who *proc, b []byte) (n int, err error) {
	dead := r.p.await(who, func() bool {
		if len(r.p.buf) == 0 && !r.p.noWrite {
			return false
		}
		if n = copy(b, r.p.buf); n == 0 && len(b) > 0 {
			err = io.EOF
		}
		r.p.buf = r.p.buf[n:]
		r.p.wake()
		return true
	})
	if dead != nil {
		return 0, dead
	}
	return n, err
}

func (pipeReader) write(*proc, []byte) (int, error) { return 0, syscall.EBADF }

func (r pipeReader) close() {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	r.p.noRead, r.p.buf = true, nil
	r.p.wake()
}

type pipeWriter struct{ p *pipe }

func (pipeWriter) read(*proc, []byte) (int, error) { return 0, syscall.EBADF }

func (w pipeWriter) write(who *proc, b []byte) (int, error) {
	for done := 0; ; {
		broken := false
		err := w.p.await(who, func() bool {
			if broken = w.p.noRead; broken {
				return true
			}
			n := min(pipeSize-len(w.p.buf), len(b)-done)
			if n > 0 {
				w.p.buf = append(w.p.buf, b[done:done+n]...)
				done += n
				w.p.wake()
			}
			return n > 0 || done == len(b)
		})
		switch {
		case err != nil:
			return done, err
		case broken:
			return done, who.brokenPipe()
		case done == len(b):
			return done, nil
		}
	}
}

func (w pipeWriter) close() {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	w.p.noWrite = true
	w.p.wake()
}
