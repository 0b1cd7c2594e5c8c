package retry

import (
	"bytes"
	"context"
	"io"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/cove-sandbox/cove"
)

// maxInput is how much input is kept to be given twice.
const maxInput = 1 << 20

// input returns what is read in the place of r at every try, and whether there
// may be more than one.
func input(r io.Reader) (fresh func() io.Reader, repeatable bool) {
	if r == nil {
		return func() io.Reader { return nil }, true
	}
	switch whole := r.(type) {
	case *bytes.Reader, *bytes.Buffer, *strings.Reader:
		sized, ok := whole.(interface{ Len() int })
		if !ok || sized.Len() > maxInput {
			break
		}
		data, err := io.ReadAll(r)
		return func() io.Reader { return bytes.NewReader(data) }, err == nil
	}
	return func() io.Reader { return r }, false
}

// output returns what is called in the place of out, and whether that has
// happened.
func output(out func(cove.Chunk)) (watched func(cove.Chunk), handedOn func() bool) {
	if out == nil {
		return nil, func() bool { return false }
	}
	var some atomic.Bool
	return func(c cove.Chunk) {
		some.Store(true)
		out(c)
	}, some.Load
}

type processes struct {
	p  platform
	id cove.ID
}

func (p processes) now() cove.Processes { return p.p.Platform.Processes(p.p.mem.now(p.id)) }

// Exec implements [cove.Processes].
func (p processes) Exec(ctx context.Context, req cove.ExecRequest) (*cove.Execution, error) {
	stdin, twice := input(req.Stdin)
	out, handedOn := output(req.OnOutput)
	return once(ctx, p.p, p.id, func() bool { return twice && !handedOn() },
		func(ctx context.Context, id cove.ID) (*cove.Execution, error) {
			req := req
			req.Stdin, req.OnOutput = stdin(), out
			return p.p.Platform.Processes(id).Exec(ctx, req)
		}, func(x *cove.Execution) *cove.Execution { return x })
}

// Start implements [cove.Processes]. It is not made twice: its answer cannot say
// that the session is another one.
func (p processes) Start(ctx context.Context, req cove.ExecRequest) (*cove.ProcessInfo, error) {
	return p.now().Start(ctx, req)
}

// List implements [cove.Processes].
func (p processes) List(ctx context.Context) iter.Seq2[cove.ProcessInfo, error] {
	return p.now().List(ctx)
}

// Connect implements [cove.Processes].
func (p processes) Connect(ctx context.Context, pid cove.PID, offset int64) iter.Seq2[cove.Chunk, error] {
	return p.now().Connect(ctx, pid, offset)
}

// Wait implements [cove.Processes].
func (p processes) Wait(ctx context.Context, pid cove.PID) (*cove.Execution, error) {
	return p.now().Wait(ctx, pid)
}

// Input implements [cove.Processes].
func (p processes) Input(ctx context.Context, pid cove.PID, data []byte, eof bool) error {
	return p.now().Input(ctx, pid, data, eof)
}

// Signal implements [cove.Processes].
func (p processes) Signal(ctx context.Context, pid cove.PID, sig cove.Signal) error {
	return p.now().Signal(ctx, pid, sig)
}

// Resize implements [cove.Processes].
func (p processes) Resize(ctx context.Context, pid cove.PID, size cove.WindowSize) error {
	return p.now().Resize(ctx, pid, size)
}

// Output implements [cove.Processes].
func (p processes) Output(ctx context.Context, id cove.OutputID, r cove.OutputRange) (*cove.OutputPage, error) {
	return p.now().Output(ctx, id, r)
}

type contexts struct {
	p  platform
	id cove.ID
}

func (c contexts) now() cove.Contexts { return c.p.Platform.Contexts(c.p.mem.now(c.id)) }

// Run implements [cove.Contexts].
func (c contexts) Run(ctx context.Context, req cove.CodeRequest) (*cove.CodeResult, error) {
	out, handedOn := output(req.OnOutput)
	var shown atomic.Bool
	req.OnOutput = out
	if show := req.OnResult; show != nil {
		req.OnResult = func(value cove.Rich, main bool) {
			shown.Store(true)
			show(value, main)
		}
	}
	return once(ctx, c.p, c.id, func() bool { return req.Context == "" && !handedOn() && !shown.Load() },
		func(ctx context.Context, id cove.ID) (*cove.CodeResult, error) {
			return c.p.Platform.Contexts(id).Run(ctx, req)
		}, func(r *cove.CodeResult) *cove.Execution { return &r.Execution })
}

// Open implements [cove.Contexts].
func (c contexts) Open(ctx context.Context, spec cove.ContextSpec) (*cove.CodeContext, error) {
	return c.now().Open(ctx, spec)
}

// List implements [cove.Contexts].
func (c contexts) List(ctx context.Context) iter.Seq2[cove.CodeContext, error] {
	return c.now().List(ctx)
}

// Restart implements [cove.Contexts].
func (c contexts) Restart(ctx context.Context, name string) error { return c.now().Restart(ctx, name) }

// Interrupt implements [cove.Contexts].
func (c contexts) Interrupt(ctx context.Context, name string) error {
	return c.now().Interrupt(ctx, name)
}

// Close implements [cove.Contexts].
func (c contexts) Close(ctx context.Context, name string) error { return c.now().Close(ctx, name) }

// Analyze implements [cove.Contexts].
func (c contexts) Analyze(ctx context.Context, req cove.AnalyzeRequest) (*cove.CodeAnalysis, error) {
	if c.id == "" {
		return c.p.Platform.Contexts("").Analyze(ctx, req)
	}
	return c.now().Analyze(ctx, req)
}
