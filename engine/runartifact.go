package engine

import (
	"context"
	"time"

	"github.com/cove-sandbox/cove"
)

// keepCode hands the code of a Python run and what came of it to the artifacts, which
// keep what they want. That they cannot is for the operator to know.
func (e *Engine) keepCode(ctx context.Context, rec *cove.Run) {
	if e.cfg.Artifacts == nil || rec.Request.Type != cove.QueryPython {
		return
	}
	a := rec.Answer
	out := &cove.CodeResult{}
	out.Outcome, out.Wall, out.Provider, out.Session = cove.Exited, a.Wall, a.Provider, rec.Request.Session
	out.Timeout, out.Budget = rec.Request.Timeout, rec.Request.MaxOutput
	out.Stdout, out.Stderr = written(a.Stdout), written(a.Stderr)
	switch {
	case a.Error == nil:
	case rec.Decision != nil && rec.Decision.Refusal != nil:
		out.Outcome, out.Refusal = cove.Blocked, rec.Decision.Refusal
	case a.Status == "timeout":
		out.Outcome = cove.TimedOut
	default:
		out.ExitCode = 1
		out.Error = &cove.CodeError{Name: a.Error.Type, Value: a.Error.Message}
	}
	about := &cove.Session{ID: rec.Request.Session, Tenant: rec.Tenant, Provider: a.Provider}
	e.keepArtifact(ctx, about, cove.Artifact{
		At: time.Now(), Session: rec.Request.Session, Tenant: rec.Tenant, Language: "python", Code: rec.Request.Python, Result: out,
	})
}

func written(text string) cove.Output {
	return cove.Output{Data: []byte(text), Bytes: int64(len(text))}
}
