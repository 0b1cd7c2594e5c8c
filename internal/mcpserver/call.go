package mcpserver

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
)

// call is one call of a tool.
type call struct {
	caller

	face *face
	peer *peer
	req  *mcp.CallToolRequest
}

// fault is what went wrong, for a model and for programs.
type fault struct {
	Code    cove.Code `json:"code" jsonschema:"who must act: invalid, denied, not_found, conflict, exhausted, unsupported, unavailable, timeout and so on"`
	Reason  string    `json:"reason,omitempty" jsonschema:"a finer word under the code"`
	Message string    `json:"message"`
	Remedy  string    `json:"remedy,omitempty" jsonschema:"what to do about it"`
}

// answer is what a tool gives: a value that fits its schema, and what a model reads.
// Where show is nil, a model reads the value.
type answer struct {
	value  any
	show   []mcp.Content
	failed bool // policy refused it
}

// add gives the server a tool. Its arguments are checked before do is called.
func add[In, Out any](f *face, t *mcp.Tool, do func(context.Context, *call, In) (answer, error)) {
	t.InputSchema, t.OutputSchema = inputSchema[In](), outputSchema[Out]()
	mcp.AddTool(f.server, t, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		began := time.Now()
		a, err := f.do(ctx, req, func(ctx context.Context, c *call) (answer, error) { return do(ctx, c, in) })
		f.Logger.LogAttrs(ctx, slog.LevelDebug, "mcp tool", slog.String("tool", t.Name), slog.String("code", string(cove.CodeOf(err))), slog.Duration("took", time.Since(began)))
		if err != nil {
			return f.sorry(ctx, err)
		}
		show := a.show
		if show == nil {
			show = []mcp.Content{text(inJSON(a.value))}
		}
		return &mcp.CallToolResult{Content: show, IsError: a.failed}, a.value, nil
	})
}

// do runs a call that ends with its client's patience, its MCP session, and the
// right of its caller to go on.
func (f *face) do(ctx context.Context, req *mcp.CallToolRequest, run func(context.Context, *call) (answer, error)) (answer, error) {
	who := f.callerOf(req)
	p, err := f.meet(req.Session, who)
	if err != nil {
		return answer{}, err
	}
	defer p.calls.Add(-1)
	if p.calls.Add(1) > maxCalls {
		return answer{}, cove.Errorf(cove.Exhausted, "more than %d calls are under way", maxCalls).Remedy("wait for some of them to end")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ctx, func() { cancel(context.Canceled) })()
	ctx, stop := f.Watch(ctx, who.who)
	defer stop()
	a, err := run(ctx, &call{caller: who, face: f, peer: p, req: req})
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, cove.Unauthenticated) {
		err = cause // the platform only knows that somebody ended its context
	}
	return a, err
}

// sorry is the answer about what went wrong.
func (f *face) sorry(ctx context.Context, err error) (*mcp.CallToolResult, any, error) {
	if cove.CodeOf(err) == cove.Internal {
		return nil, nil, f.refuse(ctx, err)
	}
	x := faultOf(err)
	words := x.Message
	if x.Remedy != "" {
		words += "\n" + x.Remedy
	}
	fit(f.room(), &words)
	return &mcp.CallToolResult{
		Content: []mcp.Content{text(words)}, IsError: true, StructuredContent: map[string]fault{"error": x},
	}, nil, nil
}

// misfit gives the library's answer to arguments that fit no schema the form of ours: it
// repeats whatever was sent.
func (f *face) misfit(r *mcp.CallToolResult) {
	if r == nil || !r.IsError || r.StructuredContent != nil || len(r.Content) == 0 {
		return
	}
	words, ok := r.Content[0].(*mcp.TextContent)
	if !ok {
		return
	}
	x := faultOf(cove.Errorf(cove.Invalid, "%s", words.Text))
	r.Content, r.StructuredContent = []mcp.Content{text(x.Message)}, map[string]fault{"error": x}
}

func faultOf(err error) fault {
	x := fault{Code: cove.CodeOf(err), Reason: cove.ReasonOf(err), Message: cove.MessageOf(err), Remedy: cove.RemedyOf(err)}
	fit(int(minBudget)/2, &x.Message, &x.Remedy)
	return x
}

// The codes of JSON-RPC.
const (
	rpcInvalidParams = -32602
	rpcInternal      = -32603
)

// refuse is an error of the protocol. Of a fault of ours it tells only where the
// log has the rest.
func (f *face) refuse(ctx context.Context, err error) error {
	x := faultOf(err)
	if x.Code != cove.Internal {
		return &jsonrpc.Error{Code: rpcInvalidParams, Message: x.Message, Data: []byte(inJSON(x))}
	}
	id := cove.NewID()
	f.Logger.LogAttrs(ctx, slog.LevelError, "mcp request failed", slog.String("request_id", string(id)), slog.Any("error", err))
	return &jsonrpc.Error{Code: rpcInternal, Message: "internal error; the log has the cause under " + string(id)}
}

func text(s string) mcp.Content { return &mcp.TextContent{Text: s} }

// room is what is left of the budget beside the frame of an answer.
func (f *face) room() int { return int(f.Budget) - f.frame() }

// frame is for names, numbers and notes beside what was asked for.
func (f *face) frame() int { return min(1<<10, int(f.Budget)/2) }
