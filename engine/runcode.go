package engine

import (
	"context"

	"github.com/cove-sandbox/cove"
)

// codeIn runs code of ours in the Python that callers of a session use when they
// name no context. Policy has judged the question that it is a part of.
func (h runHost) codeIn(l *lease, sandbox cove.Sandbox) func(context.Context, string) (*cove.CodeResult, error) {
	return func(ctx context.Context, code string) (*cove.CodeResult, error) {
		req := cove.CodeRequest{Language: "python", Code: code}
		if err := h.e.speaks(l.provider(), req.Language); err != nil {
			return nil, err
		}
		s, err := contexts{v: h.view, id: l.id}.slot(l, req)
		if err != nil {
			return nil, err
		}
		return h.e.runCode(ctx, l, s, sandbox, req, cove.Limits{Wall: h.e.cfg.ExecTimeout}, cove.NewID())
	}
}
