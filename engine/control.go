package engine

import (
	"context"

	"github.com/cove-sandbox/cove"
)

// Input implements [cove.Processes].
func (p processes) Input(ctx context.Context, pid cove.PID, data []byte, eof bool) error {
	return actDone(ctx, p.v, on(cove.ProcessInput, p.id), func(ctx context.Context, st *step) error {
		pr, err := st.lease.process(pid)
		if err != nil {
			return err
		}
		if pr.in == nil {
			return cove.Errorf(cove.Conflict, "process %d was started without an open input", pid).
				Remedy("start it with a terminal or with stdin kept open")
		}
		return pr.in.write(ctx, data, eof)
	})
}

// Signal implements [cove.Processes]. KILL takes all that the program started
// with it.
func (p processes) Signal(ctx context.Context, pid cove.PID, sig cove.Signal) error {
	return actDone(ctx, p.v, on(cove.ProcessSignal, p.id), func(ctx context.Context, st *step) error {
		sig, err := cove.ParseSignal(string(sig))
		if err != nil {
			return err
		}
		pr, err := st.lease.process(pid)
		if err != nil {
			return err
		}
		switch {
		case pr.isOver():
			return cove.Errorf(cove.NotFound, "process %d has ended", pid)
		case sig == "KILL":
			return pr.x.proc.Kill(ctx)
		}
		return pr.x.proc.Signal(ctx, sig)
	})
}

// Resize implements [cove.Processes].
func (p processes) Resize(ctx context.Context, pid cove.PID, size cove.WindowSize) error {
	return actDone(ctx, p.v, on(cove.ProcessResize, p.id), func(ctx context.Context, st *step) error {
		if size.Cols == 0 || size.Rows == 0 {
			return cove.InvalidField("cols", "a terminal has at least one column and one row")
		}
		pr, err := st.lease.process(pid)
		if err != nil {
			return err
		}
		if !pr.info.TTY {
			return cove.Errorf(cove.Unsupported, "process %d has no terminal", pid).Remedy("start it with one")
		}
		return pr.x.proc.Resize(ctx, size)
	})
}

// Output implements [cove.Processes].
func (p processes) Output(ctx context.Context, id cove.OutputID, r cove.OutputRange) (*cove.OutputPage, error) {
	return act(ctx, p.v, on(cove.ProcessOutput, p.id), func(_ context.Context, st *step) (*cove.OutputPage, error) {
		log, err := st.lease.output(p.v.e, id)
		if err != nil {
			return nil, err
		}
		return log.Page(r)
	})
}
