package duckdb

import (
	"bytes"
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
	"github.com/cove-sandbox/cove/internal/talk"
)

// process is one life of a helper. One question at a time is asked of it.
type process struct {
	proc    cove.Process
	in      *talk.Inbox
	answers *answers
	said    *talk.Head
	asked   uint64 // the id of the last question; its asker's alone

	// dead is closed when it has ended and all it wrote was heard; result and failed
	// are set before.
	dead   chan struct{}
	result cove.Result
	failed error
}

// start begins a process, which outlives ctx. It ends with its sandbox, when it is
// killed, and when it says what it may not.
func start(ctx context.Context, in cove.Starter, path string) (*process, error) {
	p := &process{in: talk.NewInbox(), answers: newAnswers(), said: talk.NewHead(maxSaid), dead: make(chan struct{})}
	proc, err := in.Start(ctx, cove.Command{
		Argv: []string{path}, Dir: "/", Env: environment(),
		Stdin: p.in, Stdout: p.answers, Stderr: p.said,
	})
	if err != nil {
		p.in.Close()
		return nil, err
	}
	p.proc = proc
	ctx = context.WithoutCancel(ctx)
	go func() {
		p.result, p.failed = proc.Wait(ctx)
		p.in.Close()
		close(p.dead)
	}()
	go func() {
		select {
		case <-p.answers.spoiled:
			p.kill(ctx)
		case <-p.dead:
		}
	}()
	return p, nil
}

// environment keeps what a sandbox sets from changing answers.
func environment() map[string]string {
	return map[string]string{"TZ": "UTC", "LC_ALL": "C", "HOME": "/nonexistent"}
}

// alive reports whether it can be asked.
func (p *process) alive() bool {
	select {
	case <-p.dead:
		return false
	default:
		return p.answers.fine()
	}
}

// kill ends the process and waits for its end, as long as that may take.
func (p *process) kill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	p.in.Close()
	p.answers.deafen()
	_ = p.proc.Kill(ctx) // what does not end goes with its sandbox
	select {
	case <-p.dead:
	case <-ctx.Done():
	}
}

// ask sends a question and waits for the answer, which may be a fault. When ctx ends,
// the helper has grace to leave the question alone; without an answer by then it is
// killed, as it is where it cannot be understood.
func (p *process) ask(ctx context.Context, q *ask.Request, grace time.Duration) (*ask.Answer, error) {
	p.asked++
	q.ID = p.asked
	var frame bytes.Buffer
	if err := ask.Write(&frame, q); err != nil {
		return nil, tooLong(err)
	}
	p.answers.expect()
	if !p.in.Offer(frame.Bytes()) {
		p.kill(ctx)
		return nil, garbled("it takes no questions")
	}
	select {
	case text := <-p.answers.got:
		return p.read(ctx, text)
	case <-p.answers.spoiled:
		p.kill(ctx)
	case <-p.dead:
	case <-ctx.Done():
		p.interrupt(ctx, grace)
		return nil, ctx.Err()
	}
	return p.last(ctx)
}

const foreign = "it is not of the protocol"

// last is the answer that a process gave before it ended or broke the protocol, or why
// there is none.
func (p *process) last(ctx context.Context) (*ask.Answer, error) {
	select {
	case text := <-p.answers.got:
		return p.read(ctx, text)
	default:
	}
	if !p.answers.fine() {
		return nil, garbled(foreign)
	}
	return nil, p.broke()
}

// read makes an answer of a frame.
func (p *process) read(ctx context.Context, text []byte) (*ask.Answer, error) {
	var a ask.Answer
	why := ""
	switch {
	case !utf8.Valid(text):
		why = "it is not UTF-8"
	case json.Unmarshal(text, &a) != nil:
		why = "it is not the JSON that was expected"
	case a.ID != p.asked:
		why = "it is not to the question"
	case a.Nanoseconds < 0:
		why = "it came before the question"
	}
	if why != "" {
		p.kill(ctx)
		return nil, garbled(why)
	}
	return &a, nil
}

// interrupt makes the helper leave its question alone. The answer that comes then is
// nobody's.
func (p *process) interrupt(ctx context.Context, grace time.Duration) {
	var frame bytes.Buffer
	stop := ask.Request{ID: p.asked + 1, Verb: ask.VerbStop, Stop: &ask.Stop{ID: p.asked}}
	p.asked++
	if err := ask.Write(&frame, stop); err != nil || grace <= 0 || !p.in.Offer(frame.Bytes()) {
		p.kill(ctx)
		return
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.answers.got:
		return
	case <-p.answers.spoiled:
	case <-p.dead:
	case <-timer.C:
	}
	p.kill(ctx)
}
