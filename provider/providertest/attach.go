package providertest

import (
	"slices"

	"github.com/cove-sandbox/cove"
)

func attachTests() []test {
	return []test{
		{"gives_the_same_sandbox", attachSame},
		{"after_a_restart", attachRestart},
		{"limits_hold_after_a_restart", attachLimits},
		{"remove_after_a_restart", attachRemove},
	}
}

// restart closes the provider and opens another on the same state.
func (e *env) restart() {
	e.Helper()
	e.must(e.p.Close(), "close")
	e.p = e.open(e.T)
}

func attachSame(e *env) {
	s := e.sandbox()
	for range 2 {
		again, err := e.p.Attach(e.ctx(), s.ID())
		e.must(err, "attach")
		equal(e, again, s, "the sandbox")
	}
}

func attachRestart(e *env) {
	e.needsPower(cove.PowerAttach)
	s := e.sandbox(func(s *cove.Spec) { s.Env = map[string]string{"WHO": "me"} })
	e.furnish(s)
	before := s.Isolation()
	e.restart()
	if !slices.Contains(e.ids(), s.ID()) {
		e.Errorf("List lacks the sandbox after a restart")
	}
	again, err := e.p.Attach(e.ctx(), s.ID())
	e.must(err, "attach")
	twice, err := e.p.Attach(e.ctx(), s.ID())
	e.must(err, "attach again")
	equal(e, again, twice, "the sandbox that a second Attach gives")
	equal(e, again.ID(), s.ID(), "the id")
	equal(e, again.Isolation(), before, "the isolation")
	e.furnished(again)
	e.prints(again, "me\n", "echo $WHO")
	_, err = e.p.Create(e.ctx(), s.ID(), e.spec())
	e.wants(cove.Conflict, err, "creating an id that survived")
	e.must(again.Destroy(e.ctx()), "destroy")
	equal(e, len(e.ids()), 0, "the number of sandboxes")
}

func attachLimits(e *env) {
	e.needsPower(cove.PowerAttach)
	e.needsHard(cove.LimitFiles)
	s := e.sandbox(func(s *cove.Spec) { s.Workspace.Files = 4 })
	e.prints(s, "", "touch a b c")
	e.restart()
	again, err := e.p.Attach(e.ctx(), s.ID())
	e.must(err, "attach")
	e.prints(again, "", "touch d")
	e.full(again.Files().Write(e.ctx(), "e", reader(""), 0o644), "one file too many")
}

func attachRemove(e *env) {
	e.needsPower(cove.PowerAttach)
	s := e.sandbox()
	e.restart()
	e.must(e.p.Remove(e.ctx(), s.ID()), "remove without attaching")
	_, err := e.p.Attach(e.ctx(), s.ID())
	e.wants(cove.NotFound, err, "attaching what was removed")
	equal(e, len(e.ids()), 0, "the number of sandboxes")
}
