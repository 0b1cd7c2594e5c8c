package engine_test

import (
	"context"
	"iter"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// slow attaches to sandboxes whose programs come back at once, and what they
// wrote when the gate is opened.
type slow struct {
	cove.Provider

	gate chan struct{}
}

func (p *slow) Attach(ctx context.Context, id cove.ID) (cove.Sandbox, error) {
	s, err := p.Provider.Attach(ctx, id)
	if err != nil {
		return nil, err
	}
	r, _ := cove.As[cove.Resumer](s)
	return &slowBox{s, r, p.gate}, nil
}

type slowBox struct {
	cove.Sandbox

	r    cove.Resumer
	gate chan struct{}
}

func (b *slowBox) Kept(ctx context.Context) iter.Seq2[cove.Kept, error] { return b.r.Kept(ctx) }

func (b *slowBox) Forget(ctx context.Context, keep string) error { return b.r.Forget(ctx, keep) }

func (b *slowBox) Resume(ctx context.Context, keep string, cmd cove.Command) (cove.Process, error) {
	p := &slowProcess{ready: make(chan struct{})}
	go func() {
		<-b.gate
		p.Process, p.err = b.r.Resume(context.WithoutCancel(ctx), keep, cmd)
		close(p.ready)
	}()
	return p, nil
}

type slowProcess struct {
	cove.Process

	err   error
	ready chan struct{}
}

func (p *slowProcess) Wait(ctx context.Context) (cove.Result, error) {
	select {
	case <-p.ready:
	case <-ctx.Done():
		return cove.Result{}, ctx.Err()
	}
	if p.err != nil {
		return cove.Result{}, p.err
	}
	return p.Process.Wait(ctx)
}

// TestAnOffsetBeforeItsOutputIsBack: who goes on where the restart was is not
// told that there is no such place, only because the output is still on its way.
func TestAnOffsetBeforeItsOutputIsBack(t *testing.T) {
	w := newWorld(t)
	first := w.open()
	s := mustOpen(t, first.As(boss), cove.Spec{})
	pr := background(t, first.As(boss), s.ID, cove.ExecRequest{Line: "echo 0123456789; read l; echo abc", KeepStdin: true})
	follow(t, first.As(boss), s.ID, pr.PID, 0, "9\n")
	w.shut(first, w.provider)
	gate := make(chan struct{})
	p := w.open(func(c *engine.Config) { c.Providers = []cove.Provider{&slow{c.Providers[0], gate}} }).As(boss)
	type answer struct {
		text string
		err  error
	}
	connect := func(offset int64) <-chan answer {
		got, begun := make(chan answer, 1), make(chan struct{})
		go func() {
			close(begun)
			var a answer
			for c, err := range p.Processes(s.ID).Connect(context.WithoutCancel(t.Context()), pr.PID, offset) {
				if a.err = err; err == nil && c.Offset != offset+int64(len(a.text)) {
					t.Errorf("a chunk is at %d", c.Offset)
				}
				a.text += string(c.Data)
			}
			got <- a
		}()
		<-begun
		return got
	}
	middle, end, beyond := connect(5), connect(11), connect(1000)
	close(gate)
	if err := p.Processes(s.ID).Input(t.Context(), pr.PID, nil, true); err != nil {
		t.Fatal(err)
	}
	if a := <-middle; a.err != nil || a.text != "56789\nabc\n" {
		t.Errorf("from the middle: %+v", a)
	}
	if a := <-end; a.err != nil || a.text != "abc\n" {
		t.Errorf("from where it was: %+v", a)
	}
	a := <-beyond
	wantCode(t, a.err, cove.Invalid, "")
}
