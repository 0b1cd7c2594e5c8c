package analyze

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/talk"
)

// The program: what it looks for, and how it is asked.
var (
	//go:embed values.py
	values string
	//go:embed imports.py
	finder string
	//go:embed facts.py
	facts string
	//go:embed serve.py
	server string
)

// worker is a process that looks at one piece of code after the other.
type worker struct {
	proc    cove.Process
	input   *io.PipeWriter
	answers *answers
	said    *talk.Head
	dead    chan struct{} // closed when the process has ended
	result  cove.Result   // when dead is closed
}

// start begins a process in a sandbox. It outlives ctx; ended is called when it
// has ended, or could not be started.
func start(ctx context.Context, in cove.Starter, ended func()) (*worker, error) {
	r, input := io.Pipe()
	w := &worker{input: input, answers: newAnswers(), said: talk.NewHead(maxText), dead: make(chan struct{})}
	proc, err := in.Start(ctx, cove.Command{
		// -I and -S: nothing but the standard library is loaded, whatever the
		// environment says and the directory holds.
		Argv: []string{"python3", "-I", "-S", "-c", values + finder + facts + server}, Dir: "/",
		Stdin: r, Stdout: w.answers, Stderr: w.said,
	})
	if err != nil {
		_ = input.Close()
		ended()
		return nil, err
	}
	w.proc = proc
	go func() {
		w.result, _ = proc.Wait(context.WithoutCancel(ctx)) // one that cannot be waited for is gone with its sandbox
		_ = r.Close()                                       // lets go of who writes
		close(w.dead)
		ended()
	}()
	return w, nil
}

func (w *worker) alive() bool {
	select {
	case <-w.dead:
		return false
	default:
		return true
	}
}

// kill ends the process and waits for its end, as long as that may take.
func (w *worker) kill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	_ = w.input.Close()
	_ = w.proc.Kill(ctx) // what does not end goes with its sandbox
	select {
	case <-w.dead:
	case <-ctx.Done():
	}
}

const killTime = 5 * time.Second

// What a process can be asked for, after the length of the code.
const (
	askImports = ""
	askFacts   = " facts"
)

// ask sends code and waits for the answer. After an error the process is of no
// more use.
func (w *worker) ask(ctx context.Context, what, code string) (answer, error) {
	timer := time.NewTimer(wallLimit)
	defer timer.Stop()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		// An error means that the process has ended, which is seen below.
		_, _ = io.WriteString(w.input, fmt.Sprintf("%d%s\n", len(code), what))
		_, _ = io.WriteString(w.input, code)
	}()
	defer func() { <-sent }()
	select {
	case a := <-w.answers.got:
		if !w.took(sent) {
			w.kill(ctx)
			return nil, misunderstood()
		}
		return a, nil
	case <-w.dead:
		return nil, w.broke()
	case <-timer.C:
		w.kill(ctx)
		return answer(`{"unread": "it took too long"}`), nil
	case <-ctx.Done():
		w.kill(ctx)
		return nil, ctx.Err()
	}
}

// took reports whether the process has taken all that it was sent: one that
// answers before is not to be believed.
func (w *worker) took(sent <-chan struct{}) bool {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-sent:
		return true
	case <-timer.C:
		return false
	}
}

// broke says why a process ended that should not.
func (w *worker) broke() error {
	if w.result.Outcome == cove.Exited && w.result.ExitCode == notFound {
		return cove.Errorf(cove.Unsupported, "there is no python3 in this template that could look into the code").
			Remedy("use a template with Python")
	}
	return cove.Errorf(cove.Unavailable, "what looks into the code ended by itself (%s, exit code %d): %s", w.result.Outcome, w.result.ExitCode, last(w.said.String())).
		Remedy("try again; if it stays, check that python3 works in the template")
}

// notFound is the exit code for a program that is not there.
const notFound = 127
