package providertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/cove-sandbox/cove"
)

// live is the output of a program that is still running.
type live struct {
	e *env

	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{}
}

func (e *env) live() *live { return &live{e: e, changed: make(chan struct{})} }

func (l *live) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return l.buf.Write(b)
}

func (l *live) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// until waits for a text and returns all output so far.
func (l *live) until(text string) string {
	l.e.Helper()
	ctx := l.e.ctx()
	for {
		l.mu.Lock()
		have, changed := l.buf.String(), l.changed
		l.mu.Unlock()
		if strings.Contains(have, text) {
			return have
		}
		select {
		case <-changed:
		case <-ctx.Done():
			l.e.Fatalf("the program never wrote %q; it wrote %q", text, clip(have))
		}
	}
}

// line waits for a whole line and returns the first.
func (l *live) line() string {
	l.e.Helper()
	first, _, _ := strings.Cut(l.until("\n"), "\n")
	return strings.TrimSpace(first)
}

// interactive is a program with an input to write to.
type interactive struct {
	cove.Process

	e   *env
	in  *io.PipeWriter
	out *live
}

// interact starts a program and keeps its input open.
func (e *env) interact(s cove.Sandbox, cmd cove.Command) *interactive {
	e.Helper()
	r, w := io.Pipe()
	e.Cleanup(func() { _ = w.Close() })
	out := e.live()
	cmd.Stdin, cmd.Stdout = r, out
	return &interactive{e.start(s, cmd), e, w, out}
}

// send fails when nobody takes the text, instead of waiting for ever.
func (i *interactive) send(text string) {
	i.e.Helper()
	ctx := i.e.ctx()
	stop := context.AfterFunc(ctx, func() { _ = i.in.CloseWithError(ctx.Err()) })
	defer stop()
	_, err := io.WriteString(i.in, text)
	i.e.must(errors.Join(err, ctx.Err()), "write to the program")
}

// gone waits until a process of the sandbox does not exist any more. It may
// take a moment until init has buried it.
func (e *env) gone(s cove.Sandbox, pid string) {
	e.Helper()
	r := e.sh(s, `i=0; while kill -0 "$1" 2>/dev/null; do i=$((i+1)); [ $i -lt 300 ] || exit 1; sleep 0.02; done`, pid)
	if r.ExitCode != 0 {
		e.Errorf("process %s is still there: %s", pid, r.stderr)
	}
}
