package httpapi

import (
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/agenttool"
	"github.com/cove-sandbox/cove/internal/wire"
)

func agentToolRoutes() []route {
	return []route{{
		method: http.MethodPost, pattern: "/api/tools/run_python_code", needs: []cove.Verb{cove.ContextRun}, summary: "Run Python code for a model: the answer is a text, whatever happens", limit: codeLimit,
		deed: post(http.StatusOK, (*call).runPython),
	}}
}

// runPython answers with a text also where the platform could not run the code.
// Only a malformed request, or one of a key without the scope, is refused.
func (c *call) runPython(w wire.PythonRequest) (none wire.PythonResult, err error) {
	if err := c.unkeyed(""); err != nil {
		return none, err
	}
	limits, err := w.Cove()
	if err != nil {
		return none, err
	}
	if w.SessionID != "" && w.Template != "" {
		return none, cove.InvalidField("session_id", "names a session that has its template; leave one of them out")
	}
	x := agenttool.Python(c.r.Context(), c.platform, agenttool.Options{
		Session: w.SessionID, Template: w.Template, Timeout: limits.Wall, Imports: c.api.ToolImports,
	}, w.Code)
	return wire.PythonResult{
		Result: x.Text, Stdout: x.Stdout, Stderr: x.Stderr, ExitCode: x.ExitCode, Duration: x.Duration,
		Meta: wire.CodeMeta{
			Runtime: x.Meta.Runtime, Truncated: x.Meta.Truncated, TimedOut: x.Meta.TimedOut, BlockedImports: x.Meta.BlockedImports,
			ResourceLimits: wire.CodeLimits(x.Meta.ResourceLimits),
		},
	}, nil
}
