package kernel_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/kernel"
)

// puppet is a sandbox whose interpreter is a function of the test.
type puppet struct {
	play   func(p *part)
	sender cove.Process // what is started after the interpreter; nil: another interpreter
	starts int
}

// part is what a puppet's interpreter has.
type part struct {
	in       *bufio.Reader
	out, err io.Writer
	marker   string
	result   cove.Result
	failed   error
	killed   chan struct{}
	once     sync.Once
	// interrupted gets one for a signal.
	interrupted chan struct{}
	done        chan struct{}
}

// Start implements [cove.Starter].
func (p *puppet) Start(_ context.Context, cmd cove.Command) (cove.Process, error) {
	if p.starts++; p.starts > 1 && p.sender != nil {
		return p.sender, nil
	}
	q := &part{
		in: bufio.NewReader(cmd.Stdin), out: cmd.Stdout, err: cmd.Stderr,
		killed: make(chan struct{}), done: make(chan struct{}), interrupted: make(chan struct{}, 1),
	}
	go func() {
		defer close(q.done)
		for range 2 { // the files of the driver
			q.skip(8)
		}
		if _, body := q.request(); body != "" {
			words, _ := kernel.Unlist([]byte(body), 100)
			q.marker = words[0]
		}
		p.play(q)
	}()
	return q, nil
}

// skip reads a length and as much.
func (q *part) skip(digits int) {
	b := make([]byte, digits)
	_, _ = io.ReadFull(q.in, b)
	n, _ := strconv.Atoi(string(b))
	_, _ = io.CopyN(io.Discard, q.in, int64(n))
}

// request reads one, or returns nothing at the end.
func (q *part) request() (head, body string) {
	head, err := q.in.ReadString('\n')
	if err != nil {
		return "", ""
	}
	words := strings.Fields(head)
	n, _ := strconv.Atoi(words[2])
	b := make([]byte, n)
	_, _ = io.ReadFull(q.in, b)
	return head, string(b)
}

func (q *part) say(w io.Writer, kind byte, seq int, words ...string) {
	body := kernel.List(words...)
	_, _ = fmt.Fprintf(w, "%s%c %d %d\n%s", q.marker, kind, seq, len(body), body)
}

func (q *part) hello() { q.say(q.out, 'H', 0, "1", "1", "3.11.2") }

func (q *part) Wait(ctx context.Context) (cove.Result, error) {
	select {
	case <-q.done:
		return q.result, q.failed
	case <-ctx.Done():
		return cove.Result{}, ctx.Err()
	}
}

func (q *part) Signal(context.Context, cove.Signal) error {
	select {
	case q.interrupted <- struct{}{}:
	default:
	}
	return nil
}

func (q *part) Kill(context.Context) error {
	q.once.Do(func() { close(q.killed) })
	return nil
}
func (q *part) Resize(context.Context, cove.WindowSize) error { return nil }

// TestEnds is about interpreters that end, and what is said of them.
func TestEnds(t *testing.T) {
	broken := errors.New("the sandbox is gone")
	for _, c := range []struct {
		name string
		play func(*part)
		open string // what is wrong with the start
		run  string // what is wrong with the run
		says string
		fail error
	}{
		{name: "no hello", play: func(q *part) { q.say(q.out, 'H', 0, "1"); <-q.killed }, open: "does not introduce itself"},
		{name: "no memory to start", play: func(q *part) { q.result.Outcome = cove.OutOfMemory }, open: "not enough memory to start python3"},
		{name: "lost at the start", play: func(q *part) { q.failed = broken }, open: broken.Error()},
		{name: "no memory", play: func(q *part) {
			q.hello()
			q.request()
			q.result = cove.Result{Outcome: cove.OutOfMemory, ExitCode: 137}
		}, run: "KernelDied", says: "ran out of memory"},
		{name: "with its sandbox", play: func(q *part) {
			q.hello()
			q.request()
			q.result = cove.Result{Outcome: cove.Killed, ExitCode: 137, Signal: "KILL"}
		}, run: "KernelDied", says: "ended with the sandbox"},
		{name: "lost", play: func(q *part) { q.hello(); q.request(); q.failed = broken }, fail: broken},
		{name: "last words", play: func(q *part) {
			q.hello()
			q.request()
			q.say(q.out, 'L', 0, "it had enough")
			q.result = cove.Result{Outcome: cove.Exited, ExitCode: 1}
		}, run: "KernelDied", says: "it had enough"},
		{name: "says all before its end", play: func(q *part) {
			q.hello()
			q.request()
			q.say(q.out, 'E', 1, "ShellExit", "exit 3", "", "0")
			q.say(q.out, 'D', 1, "3", "0", "0")
			q.result = cove.Result{Outcome: cove.Exited, ExitCode: 3}
		}, run: "ShellExit", says: "exit 3"},
		{name: "dead before", play: func(q *part) { q.hello() }, run: "KernelDied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, err := kernel.New().Open(t.Context(), &puppet{play: c.play}, cove.KernelSpec{Language: "python"})
			if c.open != "" {
				if err == nil || !strings.Contains(err.Error(), c.open) {
					t.Errorf("the start is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			r, err := k.Run(t.Context(), cove.KernelRun{Code: "1", Limits: cove.Limits{Wall: soon}})
			if !errors.Is(err, c.fail) {
				t.Fatalf("the run is %v", err)
			}
			if c.run != "" && (r.Error == nil || r.Error.Name != c.run || !strings.Contains(r.Error.Value, c.says)) {
				t.Errorf("the run is told as %+v with the error %+v", r.Result, r.Error)
			}
			if again, err := k.Run(t.Context(), cove.KernelRun{Code: "1", Limits: cove.Limits{Wall: soon}}); k.Alive() || !errors.Is(err, c.fail) || err == nil && again.Error.Name != "KernelDied" {
				t.Errorf("the next run is %+v, %v", again, err)
			}
		})
	}
}

// TestNobodyReads: an interpreter that lies about its end and reads no more makes the
// next ones wait, and no longer than they may.
func TestNobodyReads(t *testing.T) {
	k, err := kernel.New().Open(t.Context(), &puppet{play: func(q *part) {
		q.hello()
		for n := range 5 {
			q.say(q.err, 'M', n+1)
			q.say(q.out, 'D', n+1, "0", "0", "0")
		}
		q.request()
		q.say(q.err, 'M', 1)
		q.say(q.out, 'D', 1, "0", "0", "0")
		<-q.killed
	}}, cove.KernelSpec{Language: "python"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := k.Run(t.Context(), cove.KernelRun{Code: "1", Limits: cove.Limits{Wall: soon}}); err != nil || r.Error != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.Interrupt(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupt for nobody is %v", err)
	}
	r, err := k.Run(t.Context(), cove.KernelRun{Code: "1", Limits: cove.Limits{Wall: 1}})
	if err != nil || r.Outcome != cove.TimedOut || k.Alive() {
		t.Errorf("%+v, %v, alive: %v", r, err, k.Alive())
	}
}
