package policy

import (
	"maps"
	"slices"

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
		if a.Verb == cove.ContextOpen || a.Verb == cove.ContextRestart {
			j.environment(environment(a))
		}
		if j.refusal != nil {
			return j.decision()
		}
		return cove.Decision{Effect: cove.Allow, Programs: j.list.programs}
	}
	switch {
	case p.lists[name] == nil:
		j.refuse(place{}, RuleProfile, name, "the session was opened under the command policy %.80q, which is no longer configured", name)
	case code:
		j.code(a.Code, environment(a))
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
	if a.Code != nil {
		maps.Copy(env, a.Code.Env)
	}
	return env
}

// environment judges the variables that a caller sets for a command.
func (j *judge) environment(env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if guarded(name) {
			j.refuse(place{}, RuleVariable, name, "%.80s in the environment changes what the names of programs stand for or what programs load; a session with a command policy cannot set it", name)
		}
	}
}

func (j *judge) command(req *cove.ExecRequest, env map[string]string) {
	switch {
	case req == nil || req.Line == "" && len(req.Argv) == 0:
		j.refuse(place{}, RuleEmpty, "", "there is no command; send a line or an argv")
	case req.Line != "" && len(req.Argv) > 0:
		j.refuse(place{}, RuleEmpty, "", "there is both a line and an argv; send one")
	case req.Line != "":
		j.environment(env)
		j.line(req.Line, nil)
	default:
		j.environment(env)
		j.argv(req.Argv)
	}
}

// interpreters are the programs that a context of a language stands for.
var interpreters = map[string]string{"python": "python3", "python3": "python3", "node": "node", "javascript": "node", "js": "node", "typescript": "node"}

// code judges code for a context. Bash is judged as a line, but for programs that a
// person must agree to: an interpreter runs under what it was started under. For any
// other language it is enough that its interpreter is on the list.
func (j *judge) code(req *cove.CodeRequest, env map[string]string) {
	if req == nil {
		j.refuse(place{}, RuleEmpty, "", "there is no code")
		return
	}
	j.environment(env)
	if req.Language == "" {
		return // of a context that is not there
	}
	if req.Language == "bash" {
		if j.line(req.Code, nil); len(j.asked) > 0 {
			j.refuse(place{j.question.Line, j.question.Column}, RuleApproval, j.asked[0], "the command policy %s wants a person to agree before %s runs, which is not possible for code in a context; run it as a command", j.list.name, j.asked[0])
		}
		return
	}
	program, ok := interpreters[req.Language]
	if !ok || !j.list.allow[program] {
		j.refuse(place{}, RuleLanguage, req.Language, "the command policy %s does not let code in %.40q run; use one of its programs", j.list.name, req.Language)
	}
}
