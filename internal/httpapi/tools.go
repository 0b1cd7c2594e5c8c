package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func toolRoutes() []route {
	return []route{
		{
			method: http.MethodPost, pattern: "/api/code", needs: []cove.Verb{cove.ContextRun}, summary: "Run code in a session, and make the session if none is named", limit: codeLimit, events: "session, stdout, stderr, value, result",
			deed: deed{body: reflect.TypeFor[wire.CodeCall](), answer: reflect.TypeFor[wire.CodeCalled](), status: http.StatusOK, do: (*call).callCode},
		},
		{
			method: http.MethodPost, pattern: "/api/analyze", needs: []cove.Verb{cove.AdminStats, cove.ContextAnalyze, cove.RunAnalyze}, summary: "See what a policy decides about a command, about Python code or about a question to data, without running it", limit: codeLimit,
			deed: post(http.StatusOK, (*call).analyze),
		},
		{
			method: http.MethodPost, pattern: "/api/verify", needs: []cove.Verb{cove.AdminTasks}, summary: "Attack a provider's sandboxes and see what holds; it takes up to a minute", events: "finding, verdict",
			deed: deed{body: reflect.TypeFor[wire.VerifyRequest](), status: http.StatusOK, do: (*call).verify},
		},
	}
}

// callCode runs code in the session that the request names, or in a new one.
func (c *call) callCode() error {
	if err := c.unkeyed(", or open the session with it and run the code there"); err != nil {
		return err
	}
	w, err := decode[wire.CodeCall](c)
	if err != nil {
		return err
	}
	req, err := w.CodeRequest.Cove()
	if err != nil {
		return err
	}
	if w.SessionID != "" && (w.Template != "" || w.Flavor != "") {
		return cove.InvalidField("session_id", "names a session that has its template and flavor; leave those out, or the session")
	}
	if !c.wantsEvents() {
		answer, err := c.codeIn(c.r.Context(), w, req, nil)
		if err != nil {
			return err
		}
		return c.send(http.StatusOK, answer)
	}
	return c.stream(func(ctx context.Context, e *events) error {
		req.OnOutput, req.OnResult = e.chunk, e.values(w.Values)
		answer, err := c.codeIn(ctx, w, req, e)
		if err != nil {
			return err
		}
		return e.send(wire.OnResult, "", answer)
	})
}

// goneTime is how long the end of a session may take that nobody got to know.
const goneTime = 10 * time.Second

// codeIn makes the session, if need be, and runs the code. A session whose code
// could not be run ends again, because its caller never learns of it.
func (c *call) codeIn(ctx context.Context, w wire.CodeCall, req cove.CodeRequest, e *events) (answer wire.CodeCalled, err error) {
	id := w.SessionID
	if id == "" {
		s, err := c.platform.Sessions().Open(ctx, cove.OpenRequest{Spec: cove.Spec{Template: w.Template, Flavor: w.Flavor, OnEnd: cove.EndClose}})
		if err != nil {
			return answer, err
		}
		id, answer.SessionCreated = s.ID, s.Created
		if e != nil {
			_ = e.send(wire.OnSession, "", wire.SessionOf(s)) // texts and numbers always are JSON
		}
	}
	r, err := c.platform.Contexts(id).Run(ctx, req)
	if err != nil {
		if answer.SessionCreated {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goneTime)
			defer cancel()
			_, _ = c.platform.Sessions().Close(ctx, id, false) // the first error is the one to tell; expiry ends it otherwise
		}
		return answer, err
	}
	answer.CodeResult = wire.CodeResultOf(id, r)
	return answer, nil
}

// analyze asks the policy. Whoever may look at the platform may ask about
// commands, and whoever may run the rest about that.
func (c *call) analyze(w wire.AnalyzeRequest) (none wire.Analysis, err error) {
	switch things := given(w.Command) + given(w.Code) + given(w.SQL) + given(w.PythonCode); {
	case things > 1:
		return none, cove.InvalidField("command", "stands beside code, sql or python_code; ask about one thing at a time")
	case w.Code != nil:
		return c.analyzeCode(w)
	case w.SQL != nil || w.PythonCode != nil:
		return c.analyzeRun(w)
	}
	if _, err := c.platform.Admin().Stats(c.r.Context()); err != nil {
		return none, err
	}
	if w.Command == nil {
		return none, cove.InvalidField("command", "is missing; it is a line for the shell or a list of words")
	}
	if c.api.Explain == nil {
		return none, cove.Errorf(cove.Unsupported, "this server has no policies").Remedy("ask a server that cove serve started")
	}
	profile := w.Policy
	if profile == "" {
		profile = c.who.Defaults.Policy
	}
	return c.api.Explain(profile, cove.ExecRequest{Line: w.Command.Line, Argv: w.Command.Argv, Env: w.Env})
}

// given counts what a request holds.
func given[T any](v *T) int {
	if v == nil {
		return 0
	}
	return 1
}

// analyzeRun asks about a question to data, for who may ask one.
func (c *call) analyzeRun(w wire.AnalyzeRequest) (none wire.Analysis, err error) {
	d, err := c.platform.Runs().Analyze(c.r.Context(), w.CoveRun())
	if err != nil {
		return none, invalidRun(err)
	}
	return wire.RunAnalysisOf(d), nil
}

// analyzeCode asks what is in code, for who may run some.
func (c *call) analyzeCode(w wire.AnalyzeRequest) (none wire.Analysis, err error) {
	if w.SessionID != "" && w.Template != "" {
		return none, cove.InvalidField("session_id", "names a session that has its template; leave that out, or the session")
	}
	a, err := c.platform.Contexts(w.SessionID).Analyze(c.r.Context(), w.CoveCode())
	if err != nil {
		return none, err
	}
	return wire.AnalysisOf(a), nil
}

// verify attacks a provider. It takes a while and much of the machine, so it is
// for those who may run background tasks, one at a time.
func (c *call) verify() error {
	w, err := decode[wire.VerifyRequest](c)
	if err != nil {
		return err
	}
	if _, err := c.platform.Admin().Tasks(c.r.Context()); err != nil {
		return err
	}
	if c.api.Verify == nil {
		return cove.Errorf(cove.Unsupported, "this server cannot attack sandboxes").Remedy("run cove verify on its machine")
	}
	return c.stream(func(ctx context.Context, e *events) error {
		var v wire.Verdict
		err := c.api.Verify(ctx, w.Provider, func(f wire.Finding) error {
			v.Count(f)
			return e.send(wire.OnFinding, "", f)
		})
		if err != nil {
			return err
		}
		return e.send(wire.OnVerdict, "", v)
	})
}
