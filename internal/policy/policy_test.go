package policy_test

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/policy"
)

func TestNewRefuses(t *testing.T) {
	ok := []string{"ls"}
	for name, c := range map[string]struct {
		cfg  policy.Config
		says string
	}{
		"unknown default":   {policy.Config{Default: "nope"}, "nope"},
		"no name":           {policy.Config{Profiles: []policy.Profile{{Allow: ok}}}, "policy.name"},
		"odd name":          {policy.Config{Profiles: []policy.Profile{{Name: "a b", Allow: ok}}}, "a b"},
		"empty":             {policy.Config{Profiles: []policy.Profile{{Name: "x", Deny: ok}}}, "lists no program"},
		"built in":          {policy.Config{Profiles: []policy.Profile{{Name: "agent-bash", Allow: ok}}}, "another name"},
		"twice":             {policy.Config{Profiles: []policy.Profile{{Name: "x", Allow: ok}, {Name: "x", Allow: ok}}}, "twice"},
		"path":              {policy.Config{Profiles: []policy.Profile{{Name: "x", Allow: []string{"/bin/ls"}}}}, "bare name"},
		"long program":      {policy.Config{Profiles: []policy.Profile{{Name: "x", Allow: []string{strings.Repeat("a", 65)}}}}, "bare name"},
		"in two lists":      {policy.Config{Profiles: []policy.Profile{{Name: "x", Allow: ok, Deny: ok}}}, "twice"},
		"in allow and ask":  {policy.Config{Profiles: []policy.Profile{{Name: "x", Allow: ok, Ask: ok}}}, "twice"},
		"eval":              {policy.Config{Profiles: []policy.Profile{{Name: "x", Allow: []string{"eval"}}}}, "builtin"},
		"ask for source":    {policy.Config{Profiles: []policy.Profile{{Name: "x", Ask: []string{"source"}}}}, "builtin"},
		"negative wall":     {policy.Config{Profiles: []policy.Profile{{Name: "x", Allow: ok, Limits: cove.Limits{Wall: -1}}}}, "negative"},
		"negative output":   {policy.Config{Profiles: []policy.Profile{{Name: "x", Allow: ok, Limits: cove.Limits{Output: -1}}}}, "negative"},
		"helper by name":    {helped("git-core"), "absolute path"},
		"helper not clean":  {helped("/usr/lib/../lib/git-core"), "absolute path"},
		"helper with slash": {helped("/usr/lib/git-core/"), "absolute path"},
		"helper with zero":  {helped("/usr/lib/a\x00b"), "absolute path"},
		"long helper":       {helped("/usr/" + strings.Repeat("a", 1024)), "absolute path"},
		"root as helper":    {helped("/"), "more than the helpers"},
		"usr as helper":     {helped("/usr"), "more than the helpers"},
		"bin as helper":     {helped("/usr/bin"), "more than the helpers"},
		"helper twice":      {helped("/usr/lib/gcc", "/usr/lib/gcc"), "twice"},
		"too many helpers":  {helped(make([]string, 65)...), "most is 64"},
		"too many programs": {policy.Config{Profiles: []policy.Profile{{Name: "x", Allow: many(600)}}}, "most is"},
	} {
		_, err := policy.New(c.cfg)
		if cove.CodeOf(err) != cove.Invalid || !strings.Contains(cove.MessageOf(err), c.says) {
			t.Errorf("%s: got %v, want invalid with %q", name, err, c.says)
		}
	}
}

func helped(paths ...string) policy.Config {
	return policy.Config{Profiles: []policy.Profile{{Name: "x", Allow: []string{"git"}, Helpers: paths}}}
}

// TestProgramsOfADecision: whatever starts something in a session under a
// profile carries what the kernel may let it execute.
func TestProgramsOfADecision(t *testing.T) {
	p, err := policy.New(policy.Config{Profiles: []policy.Profile{{
		Name: "x", Allow: []string{"git", "cat", "bash"}, Ask: []string{"cp"}, Deny: []string{"rm"}, Helpers: []string{"/usr/lib/git-core", "/usr/lib/gcc/cc1"}, Offline: true,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	want := &cove.Programs{Names: []string{"bash", "cat", "git"}, Helpers: []string{"/usr/lib/gcc/cc1", "/usr/lib/git-core"}, Offline: true}
	asked := *want
	asked.Names = []string{"bash", "cat", "cp", "git"}
	for _, verb := range []cove.Verb{cove.ProcessExec, cove.ProcessStart, cove.TrialRun, cove.ContextRun, cove.ContextOpen, cove.ContextRestart} {
		a := root(verb)
		a.Session = &cove.Session{Spec: cove.Spec{Policy: "x"}}
		a.Exec, a.Code = &cove.ExecRequest{Line: "cat a"}, &cove.CodeRequest{Language: "bash", Code: "cat a"}
		d := p.Decide(a)
		if diff := cmp.Diff(want, d.Programs); d.Effect != cove.Allow || diff != "" {
			t.Errorf("%s: %+v %s", verb, d, diff)
		}
		// A program that a person must agree to is there for the command that asks for it
		// alone, and never for an interpreter, which takes whatever code comes.
		if a.Exec.Line = "cat a; command cp a b; cp c d; cd /"; runs(verb) {
			if d := p.Decide(a); d.Effect != cove.Ask || !cmp.Equal(&asked, d.Programs) {
				t.Errorf("%s of a program to ask about: %+v with %+v", verb, d, d.Programs)
			}
		}
		if a.Exec.Line, a.Code.Code = "rm x", "cp a b"; runs(verb) || verb == cove.ContextRun {
			if d := p.Decide(a); d.Effect != cove.Deny || d.Programs == nil || len(d.Programs.Names) > 0 {
				t.Errorf("%s that is refused: %+v with %+v", verb, d, d.Programs)
			}
		}
		a.Session.Spec.Policy = ""
		if d := p.Decide(a); d.Programs != nil {
			t.Errorf("%s without a policy: %+v", verb, d.Programs)
		}
		a.Session.Spec.Policy = "gone"
		if d := p.Decide(a); d.Effect != cove.Deny && (d.Programs == nil || len(d.Programs.Names)+len(d.Programs.Helpers) > 0) {
			t.Errorf("%s under a policy that is gone: %+v", verb, d.Programs)
		}
	}
}

func runs(v cove.Verb) bool {
	return v == cove.ProcessExec || v == cove.ProcessStart || v == cove.TrialRun
}

func TestAgentBashIsOffline(t *testing.T) {
	a := run("ls")
	if d := agentBash(t).Decide(a); !d.Programs.Offline || !slices.Contains(d.Programs.Names, "python3") || slices.Contains(d.Programs.Names, "rm") {
		t.Errorf("%+v", d.Programs)
	}
}

func many(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "p" + strings.Repeat("x", i%60) + string(rune('a'+i/60))
	}
	return names
}

func TestProfiles(t *testing.T) {
	p, err := policy.New(policy.Config{
		Profiles: []policy.Profile{{Name: "tiny", Allow: []string{"ls", "[", "g++"}, Deny: []string{"cd", ".", "eval"}}},
		Default:  "tiny",
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"agent-bash", "tiny"}, p.Profiles()); diff != "" {
		t.Error(diff)
	}
	if err := policy.AgentBash().Validate(); err != nil {
		t.Error(err)
	}
}

func root(verb cove.Verb) cove.Action {
	return cove.Action{Verb: verb, Principal: cove.Principal{Name: "k", Scopes: []cove.Scope{cove.ScopeAll}}}
}

func run(line string) cove.Action {
	a := root(cove.ProcessExec)
	a.Session = &cove.Session{Spec: cove.Spec{Policy: "agent-bash"}}
	a.Exec = &cove.ExecRequest{Line: line}
	return a
}

func TestZeroDecisionDenies(t *testing.T) {
	if (cove.Decision{}).Effect == cove.Allow || (cove.Decision{}).Effect == cove.Ask {
		t.Error("a decision that nobody made lets something through")
	}
}

func TestAuthorization(t *testing.T) {
	p := agentBash(t)
	for _, verb := range append(cove.Verbs(), "made.up") {
		trait := verb.Trait()
		for _, held := range cove.Scopes() {
			a := root(verb)
			a.Principal.Scopes = []cove.Scope{held}
			a.Spec = &cove.Spec{}
			d := p.Decide(a)
			if held == trait.Scope || held == cove.ScopeAll || slices.Contains(trait.Also, held) {
				if d.Layer == cove.Authorization {
					t.Errorf("%s with %s is refused: %+v", verb, held, d)
				}
				continue
			}
			if d.Effect != cove.Deny || d.Layer != cove.Authorization || d.Refusal == nil || d.Refusal.Rule != policy.RuleScope || !strings.Contains(d.Refusal.Reason, string(trait.Scope)) {
				t.Errorf("%s with only %s: %+v", verb, held, d)
			}
		}
	}
	a := run("ls")
	a.Principal = cove.Principal{}
	if d := p.Decide(a); d.Effect != cove.Deny || d.Layer != cove.Authorization {
		t.Errorf("nobody: %+v", d)
	}
}

// TestWhereProfilesApply: to programs and to code, by the session's profile or
// the default; to nothing else.
// TestOwnTenant: what reveals a tenant needs less where it is the caller's own.
func TestOwnTenant(t *testing.T) {
	p, err := policy.New(policy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scope  cove.Scope
		tenant string
		want   cove.Effect
		word   string // the scope that is missing
	}{
		{cove.ScopeRead, "acme", cove.Allow, ""},
		{cove.ScopeRead, "globex", cove.Deny, "admin"},
		{cove.ScopeRead, "", cove.Deny, "admin"},
		{cove.ScopeExec, "acme", cove.Deny, "sandbox:read"},
		{cove.ScopeExec, "globex", cove.Deny, "admin"},
		{cove.ScopeAdmin, "acme", cove.Allow, ""},
		{cove.ScopeAdmin, "globex", cove.Allow, ""},
		{cove.ScopeAdmin, "", cove.Allow, ""},
	} {
		for _, verb := range []cove.Verb{cove.AdminTenant, cove.AdminEvents} {
			d := p.Decide(cove.Action{Verb: verb, Tenant: c.tenant, Principal: cove.Principal{Tenant: "acme", Scopes: []cove.Scope{c.scope}}})
			word := ""
			if d.Refusal != nil {
				word = d.Refusal.Word
			}
			if d.Effect != c.want || word != c.word {
				t.Errorf("%s of %q with %s: %s for lack of %q; want %s, %q", verb, c.tenant, c.scope, d.Effect, word, c.want, c.word)
			}
		}
	}
	set := cove.Action{Verb: cove.AdminSetTenant, Tenant: "acme", Principal: cove.Principal{Tenant: "acme", Scopes: []cove.Scope{cove.ScopeRead}}}
	nobody := cove.Action{Verb: cove.AdminTenant, Principal: cove.Principal{Scopes: []cove.Scope{cove.ScopeRead}}}
	for _, a := range []cove.Action{set, nobody} {
		if d := p.Decide(a); d.Effect != cove.Deny {
			t.Errorf("%s: %+v", a.Verb, d)
		}
	}
}

func TestWhereProfilesApply(t *testing.T) {
	off, err := policy.New(policy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	on := agentBash(t)
	bad := &cove.ExecRequest{Line: "rm x"}
	named := &cove.Session{Spec: cove.Spec{Policy: "agent-bash"}}
	with := func(verb cove.Verb, s *cove.Session, spec *cove.Spec, e *cove.ExecRequest) cove.Action {
		a := root(verb)
		a.Session, a.Spec, a.Exec = s, spec, e
		return a
	}
	for name, c := range map[string]struct {
		p    *policy.Policy
		a    cove.Action
		want cove.Effect
		rule string
	}{
		"no profile at all":     {off, with(cove.ProcessExec, &cove.Session{}, nil, bad), cove.Allow, ""},
		"the session's":         {off, with(cove.ProcessExec, named, nil, bad), cove.Deny, policy.RuleDenied},
		"start too":             {off, with(cove.ProcessStart, named, nil, bad), cove.Deny, policy.RuleDenied},
		"on trial too":          {off, with(cove.TrialRun, named, nil, bad), cove.Deny, policy.RuleDenied},
		"the default":           {on, with(cove.ProcessExec, &cove.Session{}, nil, bad), cove.Deny, policy.RuleDenied},
		"one-shot":              {on, with(cove.ProcessExec, nil, nil, bad), cove.Deny, policy.RuleDenied},
		"one-shot, named":       {off, with(cove.ProcessExec, nil, &cove.Spec{Policy: "agent-bash"}, bad), cove.Deny, policy.RuleDenied},
		"gone from the config":  {off, with(cove.ProcessExec, &cove.Session{Spec: cove.Spec{Policy: "gone"}}, nil, &cove.ExecRequest{Line: "ls"}), cove.Deny, policy.RuleProfile},
		"nothing to run":        {off, with(cove.ProcessExec, named, nil, nil), cove.Deny, policy.RuleEmpty},
		"an empty request":      {off, with(cove.ProcessExec, named, nil, &cove.ExecRequest{}), cove.Deny, policy.RuleEmpty},
		"line and argv":         {off, with(cove.ProcessExec, named, nil, &cove.ExecRequest{Line: "ls", Argv: []string{"ls"}}), cove.Deny, policy.RuleEmpty},
		"nothing, no profile":   {off, with(cove.ProcessExec, nil, nil, nil), cove.Allow, ""},
		"another verb":          {on, with(cove.FileWrite, named, nil, bad), cove.Allow, ""},
		"input":                 {on, with(cove.ProcessInput, named, nil, nil), cove.Allow, ""},
		"argv":                  {on, with(cove.ProcessExec, named, nil, &cove.ExecRequest{Argv: []string{"rm", "x"}}), cove.Deny, policy.RuleDenied},
		"opening":               {on, with(cove.SessionOpen, nil, &cove.Spec{Policy: "agent-bash"}, nil), cove.Allow, ""},
		"code without a policy": {off, with(cove.ContextRun, &cove.Session{}, nil, nil), cove.Allow, ""},
		"no code":               {on, with(cove.ContextRun, named, nil, nil), cove.Deny, policy.RuleEmpty},
	} {
		d := c.p.Decide(c.a)
		rule := ""
		if d.Refusal != nil {
			rule = d.Refusal.Rule
		}
		if d.Effect != c.want || rule != c.rule {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestCode(t *testing.T) {
	p := agentBash(t)
	for _, c := range []struct {
		language, code, rule string
	}{
		{"bash", "ls | wc -l", ""},
		{"bash", "rm x", policy.RuleDenied},
		// What was said to the context before may have set the variable.
		{"bash", "echo $(( 1 + $? ))", ""},
		{"python", "import os", ""},
		{"python3", "1", ""},
		{"node", "1", policy.RuleLanguage},
		{"sh", "ls", policy.RuleLanguage},
		{"typescript", "1", policy.RuleLanguage},
		{"", "1", ""}, // of a context that is not there
	} {
		a := root(cove.ContextRun)
		a.Session = &cove.Session{Spec: cove.Spec{Policy: "agent-bash"}}
		a.Code = &cove.CodeRequest{Language: c.language, Code: c.code}
		d := p.Decide(a)
		switch {
		case c.rule == "" && d.Effect != cove.Allow:
			t.Errorf("%s %q: %+v", c.language, c.code, *d.Refusal)
		case c.rule != "" && (d.Effect != cove.Deny || d.Layer != cove.Content || d.Refusal.Rule != c.rule):
			t.Errorf("%s %q: %+v, want %s", c.language, c.code, d, c.rule)
		}
	}
}

func TestEnvironment(t *testing.T) {
	p := agentBash(t)
	for _, c := range []struct {
		session, exec map[string]string
		line, rule    string
	}{
		{nil, map[string]string{"NAME": "x", "DATA": "1"}, "ls", ""},
		{nil, map[string]string{"PATH": "/x"}, "ls", policy.RuleVariable},
		{nil, map[string]string{"LD_PRELOAD": "x"}, "ls", policy.RuleVariable},
		{map[string]string{"BASH_ENV": "x"}, nil, "ls", policy.RuleVariable},
		{map[string]string{"BASH_FUNC_ls%%": "() { rm x; }"}, nil, "ls", policy.RuleVariable},
		{map[string]string{"HOME": "/workspace", "LANG": "C.UTF-8", "IFS": ","}, nil, "ls", ""},
		{map[string]string{"PYTHONPATH": ".", "PS4": "$(rm x)"}, nil, "ls", ""},
		{map[string]string{"x": "a[$(rm x)]"}, map[string]string{"x": "5"}, "echo $((x))", ""},
		{nil, map[string]string{"x": "./dir"}, `find "$x"`, ""},
	} {
		a := run(c.line)
		a.Session.Spec.Env, a.Exec.Env = c.session, c.exec
		d := p.Decide(a)
		switch {
		case c.rule == "" && d.Effect != cove.Allow:
			t.Errorf("%v %v %s: %+v", c.session, c.exec, c.line, *d.Refusal)
		case c.rule != "" && (d.Effect != cove.Deny || d.Refusal.Rule != c.rule):
			t.Errorf("%v %v %s: %+v, want %s", c.session, c.exec, c.line, d, c.rule)
		}
	}
	a := run("")
	a.Exec = &cove.ExecRequest{Argv: []string{"ls"}, Env: map[string]string{"LD_PRELOAD": "x"}}
	if d := p.Decide(a); d.Effect != cove.Deny || d.Refusal.Rule != policy.RuleVariable {
		t.Errorf("argv with LD_PRELOAD: %+v", d)
	}
}

func TestAskAndLimits(t *testing.T) {
	limits := cove.Limits{Wall: time.Second, Output: cove.KiB}
	p, err := policy.New(policy.Config{
		Profiles: []policy.Profile{{Name: "careful", Allow: []string{"ls"}, Ask: []string{"git", "cd"}, Deny: []string{"echo"}, Limits: limits}},
		Default:  "careful",
	})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]cove.Decision{
		"ls": {Effect: cove.Allow, Limits: limits},
		"ls; git push; git pull": {Effect: cove.Ask, Layer: cove.Content, Limits: limits, Refusal: &cove.Refusal{
			Rule: policy.RuleApproval, Reason: "the command policy careful wants a person to agree before git runs", Word: "git", Line: 1, Column: 5,
		}},
		"cd x": {Effect: cove.Ask, Layer: cove.Content, Limits: limits, Refusal: &cove.Refusal{
			Rule: policy.RuleApproval, Reason: "the command policy careful wants a person to agree before cd runs", Word: "cd", Line: 1, Column: 1,
		}},
		"git x; rm y": {Effect: cove.Deny, Layer: cove.Content, Refusal: &cove.Refusal{
			Rule: policy.RuleUnlisted, Reason: `"rm" is not a program that the command policy careful allows`, Word: "rm", Line: 1, Column: 8,
		}},
		"\nls\n  echo x": {Effect: cove.Deny, Layer: cove.Content, Refusal: &cove.Refusal{
			Rule: policy.RuleDenied, Reason: "echo is denied by the command policy careful", Word: "echo", Line: 3, Column: 3,
		}},
	} {
		a := root(cove.ProcessExec)
		a.Exec = &cove.ExecRequest{Line: line}
		if diff := cmp.Diff(want, p.Decide(a), cmpopts.IgnoreFields(cove.Decision{}, "Programs")); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
	}
}

// TestPure decides everything twice, and from many goroutines at once.
func TestPure(t *testing.T) {
	p := agentBash(t)
	var lines []string
	lines = append(lines, honest...)
	for _, e := range refused {
		lines = append(lines, e.line)
	}
	env := map[string]string{"a": "1", "b": "x", "c": "", "PATH": "x", "LD_X": "y"}
	decide := func(line string) cove.Decision {
		a := run(line)
		if len(line)%7 == 0 {
			a.Exec.Env = env
		}
		return p.Decide(a)
	}
	first := map[string]cove.Decision{}
	for _, line := range lines {
		first[line] = decide(line)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, line := range lines {
				if got := decide(line); !reflect.DeepEqual(got, first[line]) {
					t.Errorf("%q: first %+v, then %+v", line, first[line], got)
				}
			}
		})
	}
	wg.Wait()
}
