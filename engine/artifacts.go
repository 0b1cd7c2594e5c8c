package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/cove-sandbox/cove"
)

// artifactInterval is how often old artifacts are looked for.
const artifactInterval = time.Hour

// answered completes an answer about code that never ran, and hands every answer
// to the artifacts. That they cannot keep it is for the operator to know: the
// caller's answer is whole without.
func (c contexts) answered(ctx context.Context, req cove.CodeRequest, out *cove.CodeResult) {
	e := c.v.e
	s := &cove.Session{ID: c.id, Tenant: c.v.p.Tenant, Provider: out.Provider}
	if l, err := e.find(s.Tenant, s.ID); err == nil {
		s = l.view()
	}
	if out.Budget == 0 {
		out.Timeout, out.Budget, out.Template = cmp.Or(req.Limits.Wall, e.cfg.ExecTimeout), e.cfg.OutputBudget, s.Spec.Template
	}
	if e.cfg.Artifacts == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	e.keepArtifact(ctx, s, cove.Artifact{
		At: time.Now(), Session: s.ID, Tenant: s.Tenant, Language: req.Language, Code: req.Code, Result: out, Env: s.Spec.Env,
	})
}

// keepArtifact hands code and what came of it to the artifacts, where the disk has room.
func (e *Engine) keepArtifact(ctx context.Context, about *cove.Session, a cove.Artifact) {
	err := e.roomForArtifact(ctx, a.Tenant)
	if err == nil {
		err = e.RoomOnDisk()
	}
	if err == nil {
		err = e.cfg.Artifacts.Put(ctx, a)
	}
	if err == nil && e.cfg.Fleeting {
		_, err = e.cfg.Artifacts.Sweep(ctx) // this process will not be there when the task comes
	}
	if err != nil {
		e.cfg.Logger.ErrorContext(ctx, "keep code and its result", errAttr(err), sessionAttr(about.ID))
		e.note(ctx, "artifact.failed", about, string(cove.CodeOf(err)))
	}
}
