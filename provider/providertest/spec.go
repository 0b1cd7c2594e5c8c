package providertest

import (
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

func specTests() []test {
	return []test{
		{"env_is_set", specEnv},
		{"host_environment_stays_outside", hostEnvironment},
		{"every_template_works", everyTemplate},
		{"unknown_template_is_invalid", unknownTemplate},
		{"every_workspace_kind_works", everyWorkspace},
		{"workspace_is_empty_and_writable", workspaceIsEmpty},
		{"isolation_is_what_probe_said", isolationReport},
		{"boundary_too_strong_is_unsupported", boundaryTooStrong},
		{"floors_hold_or_are_unsupported", floors},
		{"networks_not_offered_are_unsupported", networks},
	}
}

func specEnv(e *env) {
	s := e.sandbox(func(s *cove.Spec) { s.Env = map[string]string{"GREETING": "hello  $HOME 'ü'\nsecond", "EMPTY": ""} })
	e.prints(s, "[hello  $HOME 'ü'\nsecond][set]", `printf '[%s][%s]' "$GREETING" "${EMPTY-unset}${EMPTY+set}"`)
	r := e.run(s, cove.Command{Argv: []string{"sh", "-c", `echo "$GREETING $MORE"`}, Env: map[string]string{"GREETING": "other", "MORE": "more"}})
	equal(e, r.stdout, "other more\n", "the output with the command's own environment")
	e.prints(s, "[]", `printf '[%s]' "$MORE"`)
	e.prints(s, "ok\n", `test -d "$HOME" && test -w "$HOME" && test -n "$PATH" && test -w /tmp && echo ok`)
}

func hostEnvironment(e *env) {
	e.Setenv("COVE_SUITE_SECRET", "do-not-leak")
	s := e.sandbox()
	if r := e.sh(s, "env"); strings.Contains(r.stdout, "do-not-leak") {
		e.Errorf("the host's environment is visible inside")
	}
}

func everyTemplate(e *env) {
	for _, name := range e.caps.Templates {
		s := e.sandbox(func(s *cove.Spec) { s.Template = name })
		e.prints(s, "up\n", "echo up")
		e.check(s.Destroy(e.ctx()), "destroy")
	}
}

func unknownTemplate(e *env) {
	_, err := e.p.Create(e.ctx(), cove.NewID(), e.spec(func(s *cove.Spec) { s.Template = "no-such-template" }))
	e.wants(cove.Invalid, err, "an unknown template")
	if err != nil && !strings.Contains(cove.MessageOf(err), e.caps.Templates[0]) {
		e.Errorf("the message does not name the templates there are: %s", cove.MessageOf(err))
	}
}

func everyWorkspace(e *env) {
	for kind := range e.caps.Workspaces {
		s := e.sandbox(func(s *cove.Spec) { s.Workspace.Kind = kind })
		e.prints(s, "kept\n", "echo kept > f && cat f")
		e.isolated(s, kind)
	}
}

func workspaceIsEmpty(e *env) {
	s := e.sandbox()
	e.prints(s, cove.WorkspacePath+"\n", "pwd")
	e.prints(s, "", "ls -A")
	e.prints(s, "ok\n", "mkdir d && echo x > d/f && rm -r d && echo ok")
}

func isolationReport(e *env) {
	spec := e.spec()
	s := e.sandbox()
	e.isolated(s, spec.Workspace.Kind)
}

// isolated wants the isolation of a sandbox to be what the provider said. Where only the
// agent in it can tell what keeps programs to a list, that can be more.
func (e *env) isolated(s cove.Sandbox, kind cove.WorkspaceKind) {
	e.Helper()
	got, want := s.Isolation(), e.caps.For(kind)
	if want.Policy == cove.Soft && got.Policy == cove.Hard {
		want.Policy = cove.Hard
	}
	equal(e, got, want, "the isolation with a workspace of kind "+string(kind))
}

func boundaryTooStrong(e *env) {
	all := cove.Boundaries()
	have := slices.Index(all, e.caps.Isolation.Boundary)
	for i, b := range all {
		s, err := e.p.Create(e.ctx(), cove.NewID(), e.spec(func(s *cove.Spec) { s.Require.Isolation = b }))
		if err == nil {
			e.destroyLater(s)
		}
		if i > have {
			e.wants(cove.Unsupported, err, "requiring "+string(b))
		} else {
			e.check(err, "requiring "+string(b))
		}
	}
}

func floors(e *env) {
	for _, l := range cove.LimitNames() {
		spec := e.spec(func(s *cove.Spec) {
			s.Resources = cove.Resources{CPUs: 1, Memory: 256 * cove.MiB, PIDs: 64}
			s.Workspace.Size, s.Workspace.Files = 16*cove.MiB, 1000
			s.Floors = []cove.Limit{l}
		})
		s, err := e.p.Create(e.ctx(), cove.NewID(), spec)
		if err == nil {
			e.destroyLater(s)
		}
		if e.caps.For(spec.Workspace.Kind).Of(l) == cove.Hard {
			e.check(err, "a floor on "+string(l))
		} else {
			e.wantsReason(cove.Unsupported, cove.ReasonLimitNotEnforced, err, "a floor on "+string(l))
		}
	}
}

func networks(e *env) {
	for _, mode := range []cove.NetworkMode{cove.NetworkNone, cove.NetworkAllow, cove.NetworkOpen} {
		s, err := e.p.Create(e.ctx(), cove.NewID(), e.spec(func(s *cove.Spec) {
			s.Network.Mode = mode
			if mode == cove.NetworkAllow {
				s.Network.Allow = []string{"example.com"}
			}
		}))
		if slices.Contains(e.caps.Networks, mode) {
			e.must(err, "network "+string(mode))
			e.destroyLater(s)
		} else {
			e.wants(cove.Unsupported, err, "network "+string(mode))
		}
	}
}
