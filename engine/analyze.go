package engine

import (
	"context"
	"encoding/json"

	"github.com/cove-sandbox/cove"
)

// look has the imports of an action's code found before any of it runs, where the
// policy or the caller wants that, and puts what was found into the action. An
// error means that nobody could look and that the code must not run.
func (c contexts) look(ctx context.Context, a *action) (*cove.SecurityReport, error) {
	e, req := c.v.e, a.Code
	if req.Language != "python" {
		return nil, nil //nolint:nilnil // nobody looks, and that is no error
	}
	a.Principal = c.v.p
	rules, mode := e.importMode(a.Action)
	if req.Trusted && c.v.p.May(cove.ScopeTrusted) {
		report := &cove.SecurityReport{Mode: mode, Imports: []cove.Import{}, Blocked: []cove.Import{}, Bypassed: true}
		a.data = importData(a.data, report)
		return report, nil
	}
	if mode == cove.ImportsOff {
		return nil, nil //nolint:nilnil // nobody looks, and that is no error
	}
	// Where the answer will be no whatever is found, nobody looks.
	a.Report = &cove.SecurityReport{Mode: mode}
	l, err := e.find(c.v.p.Tenant, c.id)
	if err != nil {
		return nil, err
	}
	a.Session = l.view()
	if d := e.cfg.Policy.Decide(a.Action); d.Effect == cove.Deny {
		return nil, nil //nolint:nilnil // the road says why
	}
	if err := c.mayLook(ctx, l.provider(), *req); err != nil {
		return nil, err
	}
	report, err := e.examine(ctx, l.provider(), l.template(), req.Code)
	switch {
	case err != nil && (mode == cove.ImportsBlock || ctx.Err() != nil):
		return nil, err
	case err != nil:
		report = &cove.SecurityReport{Imports: []cove.Import{}, Unread: e.cfg.Paths.All(cove.MessageOf(err))}
	}
	report.Mode, report.Blocked = mode, dangerous(rules, report.Imports)
	a.Report, a.data = report, importData(a.data, report)
	return report, nil
}

// mayLook checks what would keep the code from running anyway.
func (c contexts) mayLook(ctx context.Context, provider string, req cove.CodeRequest) error {
	if err := req.Validate(); err != nil {
		return err
	}
	if _, err := c.v.e.tenants.check(ctx, c.v.p.Tenant); err != nil {
		return err
	}
	return c.v.e.speaks(provider, req.Language)
}

// importMode is what becomes of dangerous imports in the code of an action, and
// who knows them.
func (e *Engine) importMode(a cove.Action) (cove.ImportPolicy, cove.ImportMode) {
	if rules, ok := e.cfg.Policy.(cove.ImportPolicy); ok {
		return rules, rules.ImportMode(a)
	}
	return nil, cove.ImportsOff.Tighten(a.Code.Imports)
}

// dangerous is what rules say of imports. Without rules all are dangerous: who
// asks for them to be blocked must not be told that none is.
func dangerous(rules cove.ImportPolicy, list []cove.Import) []cove.Import {
	if rules == nil {
		return list
	}
	return rules.Dangerous(list)
}

// examine has code looked at in a clean room. Code that ends what looks at it
// counts as not read.
func (e *Engine) examine(ctx context.Context, provider, template, code string) (*cove.SecurityReport, error) {
	analyzer, ok := e.cfg.Analyzers[provider]
	if !ok {
		analyzer = e.cfg.Analyzers[""]
	}
	p, found := e.probes.provider(provider)
	if analyzer == nil || !found {
		return nil, cove.Errorf(cove.Unsupported, "this build cannot look into Python code").
			Remedy("ask for no look at the imports; the sandbox holds the code all the same")
	}
	r, err := e.enterRoom(ctx, p, template, cove.Tool{})
	if err != nil {
		return nil, err
	}
	report, err := analyzer.Analyze(ctx, r.sandbox, "python", code)
	broken := err != nil && ctx.Err() == nil && cove.CodeOf(err) != cove.Exhausted
	e.leaveRoom(ctx, r, broken)
	if broken && cove.CodeOf(err) != cove.Unsupported {
		return &cove.SecurityReport{Imports: []cove.Import{}, Unread: e.cfg.Paths.All(cove.MessageOf(err))}, nil //nolint:nilerr // the report has it
	}
	return report, err
}

// misspelt is the answer for code that no interpreter can read.
func (s *step) misspelt(slot *slot, report *cove.SecurityReport) *cove.CodeResult {
	out := &cove.CodeResult{Context: slot.info.Name, Template: s.lease.template(), Error: report.Syntax, Security: report}
	out.Outcome, out.ExitCode = cove.Exited, 1
	out.Provider, out.Session = s.lease.provider(), s.lease.id
	s.ended(out.Result)
	return out
}

// Bounds on what the journal keeps of imports.
const (
	maxNotedImports = 8
	maxNotedName    = 64
)

// importData adds to what the journal keeps of code what was done about imports.
func importData(content json.RawMessage, r *cove.SecurityReport) json.RawMessage {
	type note struct {
		Mode    cove.ImportMode `json:"mode"`
		Bypass  bool            `json:"bypass,omitempty"`
		Unread  bool            `json:"unread,omitempty"`
		Blocked []string        `json:"blocked,omitempty"`
	}
	n := note{Mode: r.Mode, Bypass: r.Bypassed, Unread: r.Unread != ""}
	for _, i := range r.Blocked[:min(len(r.Blocked), maxNotedImports)] {
		n.Blocked = append(n.Blocked, i.Module[:min(len(i.Module), maxNotedName)])
	}
	var all map[string]any
	if err := json.Unmarshal(content, &all); err != nil {
		return content
	}
	all["imports"] = n
	data, err := json.Marshal(all)
	if err != nil {
		return content
	}
	return data
}

// Analyze implements [cove.Contexts]. A session that is stopped or paused will do:
// nothing happens in it.
func (c contexts) Analyze(ctx context.Context, req cove.AnalyzeRequest) (*cove.CodeAnalysis, error) {
	a := action{Action: cove.Action{Verb: cove.ContextAnalyze}}
	if c.id != "" {
		a = on(cove.ContextAnalyze, c.id)
	}
	return act(ctx, c.v, a, func(ctx context.Context, st *step) (*cove.CodeAnalysis, error) {
		if err := req.Validate(); err != nil {
			return nil, err
		}
		if _, err := c.v.e.tenants.check(ctx, c.v.p.Tenant); err != nil {
			return nil, err
		}
		out, session, err := c.whereToLook(ctx, st.lease, req.Template)
		if err != nil {
			return nil, err
		}
		if out.Security, err = c.v.e.examine(ctx, out.Provider, out.Template, req.Code); err != nil {
			return nil, err
		}
		code := cove.CodeRequest{Language: "python", Code: req.Code, Imports: req.Imports}
		would := cove.Action{Verb: cove.ContextRun, Principal: c.v.p, Session: session, Code: &code, Report: out.Security}
		rules, mode := c.v.e.importMode(would)
		out.Security.Mode, out.Security.Blocked = mode, dangerous(rules, out.Security.Imports)
		out.Decision = c.v.e.cfg.Policy.Decide(would)
		return out, nil
	})
}

// whereToLook is whose interpreter looks at code: that of a session, or that of a
// template.
func (c contexts) whereToLook(ctx context.Context, l *lease, template string) (*cove.CodeAnalysis, *cove.Session, error) {
	if l != nil {
		return &cove.CodeAnalysis{Provider: l.provider(), Template: l.template()}, l.view(), nil
	}
	spec, err := c.v.e.resolve(c.v.p, cove.Spec{Template: template})
	if err != nil {
		return nil, nil, err
	}
	p, err := c.v.e.choose(ctx, spec)
	if err != nil {
		return nil, nil, err
	}
	return &cove.CodeAnalysis{Provider: p.Name(), Template: spec.Template}, nil, nil
}
