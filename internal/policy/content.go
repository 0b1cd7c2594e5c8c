package policy

import (
	"maps"

	"github.com/cove-sandbox/cove"
)

// content is the second layer: may this command run under the session's profile.
func (p *Policy) content(a cove.Action) cove.Decision {
	runs := a.Verb == cove.ProcessExec || a.Verb == cove.ProcessStart || a.Verb == cove.TrialRun
	code := a.Verb == cove.ContextRun
	name := p.profileOf(a)
	if name == "" {
		return cove.Decision{Effect: cove.Allow}
	}
	j := &judge{list: p.lists[name]}
	if j.list == nil {
		j.list = newList(Profile{}) // it lets nothing run
	}
	if !runs && !code {
		// To open or restart a context starts an interpreter, too.
		return cove.Decision{Effect: cove.Allow, Programs: j.list.programs}
	}
	switch {
	case p.lists[name] == nil:
		j.refuse(place{}, RuleProfile, name, "the session was opened under the command policy %.80q, which is no longer configured", name)
	case code:
		j.code(a.Code)
	default:
		j.command(a.Exec, environment(a))
	}
	return j.decision()
}

func (p *Policy) profileOf(a cove.Action) string {
	name := ""
	switch {
	case a.Session != nil:
		name = a.Session.Spec.Policy
	case a.Spec != nil:
		name = a.Spec.Policy
	}
	if name == "" {
		name = p.fallback
	}
	return name
}

// environment is what callers add to the one that the sandbox has by itself.
func environment(a cove.Action) map[string]string {
	env := map[string]string{}
	if a.Session != nil {
		maps.Copy(env, a.Session.Spec.Env)
	}
	if a.Exec != nil {
		maps.Copy(env, a.Exec.Env)
	}
	return env
}

func (j *judge) command(req *cove.ExecRequest, env map[string]string) {
	switch {
	case req == nil || req.Line == "" && len(req.Argv) == 0:
		j.refuse(place{}, RuleEmpty, "", "there is no command; send a line or an argv")
	case req.Line != "" && len(req.Argv) > 0:
		j.refuse(place{}, RuleEmpty, "", "there is both a line and an argv; send one")
	case req.Line != "":
		j.environment(env)
		j.line(script{src: newSource(req.Line, nil), lang: bash, fresh: true, env: env})
	default:
		j.environment(env)
		j.argv(req.Argv)
	}
}

// interpreters are the programs that a context of a language stands for.
var interpreters = map[string]string{"python": "python3", "python3": "python3", "node": "node", "javascript": "node", "js": "node"}

// code judges code for a context. Bash is judged as a line; what it was told
// before is still there, so nothing is known of its variables. For any other
// language it is enough that its interpreter is on the list, as it is for a
// script in a file.
func (j *judge) code(req *cove.CodeRequest) {
	if req == nil {
		j.refuse(place{}, RuleEmpty, "", "there is no code")
		return
	}
	j.environment(req.Env)
	if req.Language == "bash" {
		j.line(script{src: newSource(req.Code, nil), lang: bash})
		return
	}
	program, ok := interpreters[req.Language]
	if !ok || !j.list.allow[program] {
		j.refuse(place{}, RuleLanguage, req.Language, "the command policy %s does not let code in %.40q run; use one of its programs", j.list.name, req.Language)
	}
}
