package kernel_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/kernel"
)

// keeper is a sandbox of puppets that outlive a kernel. It has what was marked, and
// replays what they wrote after that.
type keeper struct {
	cove.Sandbox
	*puppet

	mu        sync.Mutex
	note      []byte
	out, errs tail
	part      *part
	input     *io.PipeWriter
}

// tail is what a puppet wrote, and a way to its reader.
type tail struct {
	mu   sync.Mutex
	all  []byte
	from int64
	to   func([]byte)
}

func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, p...)
	if w.to != nil {
		w.to(p)
	}
	return len(p), nil
}

// lead has another one read, from the mark on; nil: none.
func (w *tail) lead(to func([]byte)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.to = to; to != nil {
		to(w.all[w.from:])
	}
}

func (w *tail) mark(at int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from = at
}

func (k *keeper) connect(cmd cove.Command) {
	k.out.lead(func(b []byte) { _, _ = cmd.Stdout.Write(b) })
	k.errs.lead(func(b []byte) { _, _ = cmd.Stderr.Write(b) })
}

// Start implements [cove.Starter].
func (k *keeper) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	k.connect(cmd)
	r, w := io.Pipe()
	k.input = w
	first := cmd.Stdin
	go func() { _, _ = io.Copy(w, first) }()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, &k.out, &k.errs
	p, err := k.puppet.Start(ctx, cmd)
	k.part, _ = p.(*part)
	return p, err
}

// Mark implements [cove.Recorder].
func (k *keeper) Mark(_ context.Context, _ string, m cove.Mark) error {
	k.mu.Lock()
	k.note = m.Note
	k.mu.Unlock()
	k.out.mark(m.Stdout)
	k.errs.mark(m.Stderr)
	return nil
}

// Kept implements [cove.Resumer].
func (k *keeper) Kept(context.Context) iter.Seq2[cove.Kept, error] { return nil }

// Resume implements [cove.Resumer].
func (k *keeper) Resume(_ context.Context, _ string, cmd cove.Command) (cove.Process, error) {
	go func() { _, _ = io.Copy(k.input, cmd.Stdin) }()
	k.connect(cmd)
	return k.part, nil
}

// Forget implements [cove.Resumer].
func (k *keeper) Forget(context.Context, string) error { return nil }

var _ cove.Recorder = (*keeper)(nil)

// begun opens an interpreter and has it run code, until the puppet says so.
func begun(t *testing.T, play func(q *part, begun func())) *keeper {
	t.Helper()
	at := make(chan struct{})
	k := &keeper{puppet: &puppet{play: func(q *part) {
		q.hello()
		play(q, sync.OnceFunc(func() { close(at) }))
	}}}
	n, err := kernel.New().Open(t.Context(), k, cove.KernelSpec{Language: "python", Keep: "c-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = k.input.Close()
		<-k.part.done
	})
	ended := make(chan error, 1)
	go func() {
		_, err := n.Run(context.WithoutCancel(t.Context()), cove.KernelRun{Code: "1", Note: []byte("mine")})
		ended <- err
	}()
	<-at
	k.out.lead(nil)
	k.errs.lead(nil)
	kept, _ := n.(cove.KeptKernel)
	kept.Leave()
	if err := <-ended; !errors.Is(err, cove.ErrLeft) {
		t.Errorf("the caller that waited for the code is told %v", err)
	}
	return k
}

func (k *keeper) resume(t *testing.T, heard *heard) (cove.KeptKernel, error) {
	t.Helper()
	return kernel.New().Resume(t.Context(), k, cove.Kept{Keep: "c-1", Note: k.note}, cove.KernelSpec{}, func(note []byte) (cove.KernelRun, error) {
		if string(note) != "mine" {
			t.Errorf("the note is %q", note)
		}
		return cove.KernelRun{OnOutput: heard.hear, Limits: cove.Limits{Wall: soon}}, nil
	})
}

// TestResume is about code that was under way when its host left.
func TestResume(t *testing.T) {
	over := func(q *part, n int) {
		q.say(q.err, 'M', n)
		q.say(q.out, 'D', n, "0", "0", "0")
	}
	for _, c := range []struct {
		name string
		play func(q *part, begun func())
		out  string
		fail error
		next int // the number of the run after it
	}{
		{"ends later", func(q *part, begun func()) {
			q.request()
			_, _ = q.out.Write([]byte("before\n"))
			begun()
			q.request()
			_, _ = q.out.Write([]byte("after\n"))
			over(q, 1)
		}, "before\nafter\n", nil, 2},
		{"in the middle of a frame", func(q *part, begun func()) {
			q.request()
			_, _ = q.out.Write([]byte("text" + q.marker[:len(q.marker)/2]))
			begun()
			q.request()
			_, _ = q.out.Write([]byte(q.marker[len(q.marker)/2:] + "D 1 9\n1:01:01:0"))
			q.say(q.err, 'M', 1)
		}, "text", nil, 2},
		{"never begun", func(q *part, begun func()) {
			q.request() // as if it were lost
			begun()
		}, "", cove.ErrNotBegun, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := begun(t, func(q *part, begun func()) {
				c.play(q, begun)
				for {
					head, _ := q.request()
					switch {
					case head == "":
						return
					case head[0] == 'P':
						q.say(q.out, 'P', 0)
					case head[0] == 'X':
						n, _ := strconv.Atoi(strings.Fields(head)[1])
						over(q, n)
					}
				}
			})
			heard := &heard{}
			n, err := k.resume(t, heard)
			if err != nil {
				t.Fatal(err)
			}
			r, err := n.Finish(t.Context())
			if !errors.Is(err, c.fail) || err == nil && r.Outcome != cove.Exited {
				t.Fatalf("%+v, %v", r, err)
			}
			if got := heard.stdout(); got != c.out {
				t.Errorf("it wrote %q, want %q", got, c.out)
			}
			if r, err = n.Run(t.Context(), cove.KernelRun{Code: "2", Limits: cove.Limits{Wall: soon}}); err != nil || r.Count != c.next {
				t.Errorf("the next run is %+v, %v", r, err)
			}
		})
	}
}

// TestResumeAnotherVersion: a driver of another version is not spoken to.
func TestResumeAnotherVersion(t *testing.T) {
	for _, note := range []string{`{"version": 99, "language": "python"}`, `{"version": 1, "language": "cobol"}`, `{}`, `no note`} {
		_, err := kernel.New().Resume(t.Context(), &keeper{}, cove.Kept{Keep: "c-1", Note: []byte(note)}, cove.KernelSpec{}, nil)
		if err == nil {
			t.Errorf("%s is taken up", note)
		}
	}
}
