package fake

import (
	"bytes"
	"io"
	"sync"

	"github.com/cove-sandbox/cove"
)

// The keys that a terminal in its usual mode acts upon.
const (
	keyInterrupt = 0x03
	keyEOF       = 0x04
	keyBackspace = 0x08
	keyQuit      = 0x1c
	keyKill      = 0x15
	keyDelete    = 0x7f
)

// tty is a terminal with the usual line discipline: it echoes what is typed,
// hands it over by lines, turns keys into signals and ends lines of output
// with a carriage return.
type tty struct {
	j     *job
	out   *outlet
	lines chan []byte // an empty one is the end of the input, once
	turn  chan struct{}
	rest  []byte // guarded by turn

	mu   sync.Mutex
	size cove.WindowSize
	mute bool // no echo

	line []byte // what is being typed; used by the goroutine of typed alone
}

func newTTY(j *job, size cove.WindowSize) *tty {
	return &tty{j: j, out: &outlet{j: j}, lines: make(chan []byte, 64), turn: make(chan struct{}, 1), size: size}
}

func (t *tty) resize(size cove.WindowSize) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size = size
}

func (t *tty) window() cove.WindowSize {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size
}

func (t *tty) setEcho(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mute = !on
}

func (t *tty) read(p *proc, b []byte) (int, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-p.dead:
		return 0, errDead
	}
	if len(t.rest) == 0 {
		select {
		case line, ok := <-t.lines:
			if !ok || len(line) == 0 {
				return 0, io.EOF
			}
			t.rest = line
		case <-t.j.over:
			return 0, io.EOF
		case <-p.dead:
			return 0, errDead
		}
	}
	n := copy(b, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

func (t *tty) write(p *proc, b []byte) (int, error) {
	if _, err := t.out.write(p, cooked(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (*tty) close() {}

// cooked ends lines as a terminal wants them.
func cooked(b []byte) []byte {
	return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))
}

// typed takes the caller's input until the job is over.
func (t *tty) typed(in *intake) {
	defer close(t.lines)
	for {
		chunk, err := in.next(t.j.over)
		if err != nil {
			return
		}
		for _, key := range chunk {
			if !t.press(key) {
				return
			}
		}
	}
}

// press is one key. It reports whether the terminal is still there.
func (t *tty) press(key byte) bool {
	switch key {
	case keyInterrupt:
		t.line = nil
		t.echo("^C")
		t.j.m.interrupt(t.j, "INT")
	case keyQuit:
		t.line = nil
		t.echo("^\\")
		t.j.m.interrupt(t.j, "QUIT")
	case keyEOF:
		return t.enter()
	case keyBackspace, keyDelete:
		if n := len(t.line); n > 0 {
			t.line = t.line[:n-1]
			t.echo("\b \b")
		}
	case keyKill:
		for range t.line {
			t.echo("\b \b")
		}
		t.line = nil
	case '\r', '\n':
		t.line = append(t.line, '\n')
		t.echo("\r\n")
		return t.enter()
	default:
		if len(t.line) < maxPath {
			t.line = append(t.line, key)
			t.echo(string([]byte{key}))
		}
	}
	return true
}

// enter hands over what was typed.
func (t *tty) enter() bool {
	line := t.line
	t.line = nil
	select {
	case t.lines <- line:
		return true
	case <-t.j.over:
		return false
	}
}

// echo shows what was typed. It writes as the main process, so that it waits
// for nothing once that is gone.
func (t *tty) echo(text string) {
	t.mu.Lock()
	mute := t.mute
	t.mu.Unlock()
	if !mute {
		_, _ = t.out.write(t.j.main, []byte(text))
	}
}
