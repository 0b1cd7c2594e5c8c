package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

type processes struct {
	c  *Client
	id cove.ID
}

func (p processes) at(pid cove.PID, rest string) path {
	return path{sandboxes, string(p.id), "/processes/", strconv.Itoa(int(pid)), rest}
}

// List implements [cove.Processes].
func (p processes) List(ctx context.Context) iter.Seq2[cove.ProcessInfo, error] {
	return list(ctx, p.c, ask{method: http.MethodGet, path: of(p.id, "/processes")}, 0, plain(wire.Process.Cove))
}

// Connect implements [cove.Processes].
func (p processes) Connect(ctx context.Context, pid cove.PID, offset int64) iter.Seq2[cove.Chunk, error] {
	return func(yield func(cove.Chunk, error) bool) {
		a := ask{method: http.MethodGet, path: p.at(pid, ""), query: values("offset", strconv.FormatInt(offset, 10))}
		for f, err := range p.c.follow(ctx, a, wire.OnExit, wire.OnEnd) {
			if err != nil {
				yield(cove.Chunk{}, err)
				return
			}
			if f.name != wire.OnStdout && f.name != wire.OnStderr {
				continue
			}
			w, err := parse[wire.Chunk](p.c, f)
			if err != nil {
				yield(cove.Chunk{}, err)
				return
			}
			if !yield(w.Cove(cove.Stream(f.name)), nil) {
				return
			}
		}
	}
}

// Wait implements [cove.Processes].
func (p processes) Wait(ctx context.Context, pid cove.PID) (*cove.Execution, error) {
	return p.execution(ctx, ask{method: http.MethodGet, path: p.at(pid, "/wait")})
}

func (p processes) execution(ctx context.Context, a ask) (*cove.Execution, error) {
	w, err := get[wire.Execution](ctx, p.c, a)
	if err != nil {
		return nil, err
	}
	return w.Cove(), nil
}

// maxInput bounds the input in one request, also when all of it needs escaping.
const maxInput = 1 << 20

// Input implements [cove.Processes]. Long input goes in several requests.
func (p processes) Input(ctx context.Context, pid cove.PID, data []byte, eof bool) error {
	for {
		part := data[:min(len(data), maxInput)]
		data = data[len(part):]
		err := p.c.tell(ctx, ask{method: http.MethodPost, path: p.at(pid, "/input"), body: wire.InputRequestOf(part, eof && len(data) == 0)})
		if err != nil || len(data) == 0 {
			return err
		}
	}
}

// Signal implements [cove.Processes].
func (p processes) Signal(ctx context.Context, pid cove.PID, sig cove.Signal) error {
	return p.c.tell(ctx, ask{method: http.MethodPost, path: p.at(pid, "/signal"), body: wire.SignalRequest{Signal: string(sig)}})
}

// Resize implements [cove.Processes].
func (p processes) Resize(ctx context.Context, pid cove.PID, size cove.WindowSize) error {
	return p.c.tell(ctx, ask{method: http.MethodPost, path: p.at(pid, "/resize"), body: size})
}

// Output implements [cove.Processes].
func (p processes) Output(ctx context.Context, id cove.OutputID, r cove.OutputRange) (*cove.OutputPage, error) {
	query := values("stream", string(r.Stream), "grep", r.Grep)
	if r.Offset != 0 {
		query.Set("offset", strconv.FormatInt(r.Offset, 10))
	}
	if r.Limit != 0 {
		query.Set("limit", strconv.FormatInt(r.Limit, 10))
	}
	w, err := get[wire.OutputPage](ctx, p.c, ask{
		method: http.MethodGet, path: path{sandboxes, string(p.id), "/output/", string(id)}, query: query,
	})
	if err != nil {
		return nil, err
	}
	return w.Cove(), nil
}
