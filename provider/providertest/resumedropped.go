package providertest

import (
	"io"
	"sync"

	"github.com/cove-sandbox/cove"
)

// counter counts what is written to it, and what is said to have been dropped.
type counter struct {
	mu      sync.Mutex
	written int64 // guarded by mu, as is the next
	dropped int64
}

func (c *counter) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written += int64(len(b))
	return len(b), nil
}

// Skip is what a writer of kept output is told of what is no longer there.
func (c *counter) Skip(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped += n
}

func (c *counter) sum() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written + c.dropped
}

// resumeDropped: of much output only a part is kept for the server that resumes the program, and the
// rest is counted for the stream that it was written to.
func resumeDropped(e *env) {
	const stdout, stderr = 24_000_000, 1_000_000
	s := e.resumable()
	all, wrong := e.live(), e.live() // with one writer for both it would be one stream
	r, w := io.Pipe()
	cmd := shell("head -c 20000000 /dev/zero; head -c 1000000 /dev/zero >&2; head -c 4000000 /dev/zero; while [ ! -e go ]; do sleep 0.03; done; exit 4")
	cmd.Keep, cmd.Stdin, cmd.Stdout, cmd.Stderr = "p1", r, all, wrong
	started, err := s.Start(e.ctx(), cmd)
	e.must(err, "start")
	p := &keptProgram{&interactive{Process: started, e: e, in: w, out: all}, "p1"}
	all.untilBytes(stdout)
	wrong.untilBytes(stderr)
	again := e.reattach(s, p)
	e.write(again, "go", "")
	for range 2 { // while it runs or has just ended, and later
		var out, errs counter
		r, err := as[cove.Resumer](e, again).Resume(e.ctx(), "p1", cove.Command{Stdout: &out, Stderr: &errs})
		e.must(err, "resume")
		e.ended(e.wait(r), cove.Exited, 4, "")
		equal(e, out.sum(), int64(stdout), "bytes of stdout")
		equal(e, errs.sum(), int64(stderr), "bytes of stderr")
		equal(e, out.dropped > 0, true, "whether the case is about output that was dropped")
	}
}

// untilBytes waits until so much was written.
func (l *live) untilBytes(n int) {
	l.e.Helper()
	for ctx := l.e.ctx(); ; {
		l.mu.Lock()
		have, changed := l.buf.Len(), l.changed
		l.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			l.e.Fatalf("%d bytes were written, want %d", have, n)
		}
	}
}
