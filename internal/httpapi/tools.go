package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func toolRoutes() []route {
	return []route{
		{method: http.MethodGet, pattern: "/api/templates", summary: "List what sessions can start from", deed: get((*call).templates)},
		{
			method: http.MethodPost, pattern: "/api/code", summary: "Run code in a session, and make the session if none is named", limit: codeLimit, events: "session, stdout, stderr, result",
			deed: deed{body: reflect.TypeFor[wire.CodeCall](), answer: reflect.TypeFor[wire.CodeCalled](), status: http.StatusOK, do: (*call).callCode},
		},
		{
			method: http.MethodPost, pattern: "/api/analyze", summary: "See what a policy decides about a command, without running it", limit: commandLimit,
			deed: post(http.StatusOK, (*call).analyze),
		},
		{
			method: http.MethodPost, pattern: "/api/verify", summary: "Attack a provider's sandboxes and see what holds; it takes up to a minute", events: "finding, verdict",
			deed: deed{body: reflect.TypeFor[wire.VerifyRequest](), status: http.StatusOK, do: (*call).verify},
		},
	}
}

func (c *call) templates() (wire.Page[wire.Template], error) {
	reports, err := c.platform.Admin().Doctor(c.r.Context())
	p := wire.Page[wire.Template]{Items: []wire.Template{}}
	for _, report := range reports {
		for _, name := range report.Capabilities.Templates {
			i := slices.IndexFunc(p.Items, func(t wire.Template) bool { return t.Name == name })
			if i < 0 {
				i, p.Items = len(p.Items), append(p.Items, wire.Template{Name: name})
			}
			p.Items[i].Providers = append(p.Items[i].Providers, report.Name)
		}
	}
	slices.SortStableFunc(p.Items, func(a, b wire.Template) int { return strings.Compare(a.Name, b.Name) })
	return p, err
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
		req.OnOutput = e.chunk
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
		s, err := c.platform.Sessions().Open(ctx, cove.OpenRequest{Spec: cove.Spec{Template: w.Template, Flavor: w.Flavor}})
		if err != nil {
			return answer, err
		}
		id, answer.SessionCreated, answer.Template = s.ID, s.Created, s.Spec.Template
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

// analyze asks the policy. Whoever may look at the platform may ask.
func (c *call) analyze(w wire.AnalyzeRequest) (none wire.Analysis, err error) {
	if _, err := c.platform.Admin().Stats(c.r.Context()); err != nil {
		return none, err
	}
	switch given := w.Command != nil; {
	case given && (w.Code != nil || w.SQL != nil), w.Code != nil && w.SQL != nil:
		return none, cove.InvalidField("command", "stands beside code or sql; ask about one thing at a time")
	case w.Code != nil:
		return none, cove.Errorf(cove.Unsupported, "this build does not look into code").Remedy("ask about a command, or run the code: a sandbox holds it")
	case w.SQL != nil:
		return none, cove.Errorf(cove.Unsupported, "this build does not read SQL").Remedy("ask about a command")
	case !given:
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
