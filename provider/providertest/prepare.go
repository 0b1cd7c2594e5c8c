package providertest

import (
	"slices"

	"github.com/cove-sandbox/cove"
)

func prepareTests() []test {
	return []test{
		{"claim_makes_a_sandbox", claimMakes},
		{"spare_is_not_listed", spareNotListed},
		{"claim_that_fails_leaves_nothing", claimFails},
		{"spare_is_used_once", spareOnce},
		{"discard", spareDiscard},
		{"unknown_template_is_invalid", prepareUnknown},
	}
}

func (e *env) mold() cove.Mold {
	s := e.spec()
	return cove.Mold{Provider: e.p.Name(), Template: s.Template, Workspace: s.Workspace.Kind}
}

func (e *env) spare() cove.Spare {
	e.Helper()
	e.needsPower(cove.PowerPrepare)
	s, err := as[cove.Preparer](e, e.p).Prepare(e.ctx(), e.mold())
	e.must(err, "prepare")
	e.Cleanup(func() { e.check(s.Discard(e.last()), "discard") })
	return s
}

func claimMakes(e *env) {
	spare := e.spare()
	id := cove.NewID()
	s, err := spare.Claim(e.ctx(), id, e.spec(func(s *cove.Spec) {
		s.Env = map[string]string{"WHO": "claimed"}
		s.Resources.Memory = 128 * cove.MiB
	}))
	e.must(err, "claim")
	e.destroyLater(s)
	equal(e, s.ID(), id, "the id")
	e.prints(s, "claimed /workspace\n", `echo "$WHO $(pwd)"`)
	e.prints(s, "", "ls -A; ls -A /tmp")
	e.isolated(s, e.mold().Workspace)
	if !slices.Contains(e.ids(), id) {
		e.Errorf("List lacks the sandbox")
	}
	again, err := e.p.Attach(e.ctx(), id)
	e.must(err, "attach")
	equal(e, again, s, "the sandbox that Attach gives")
}

func spareNotListed(e *env) {
	e.spare()
	equal(e, len(e.ids()), 0, "the number of sandboxes while there is a spare")
}

func claimFails(e *env) {
	s := e.sandbox()
	_, err := e.spare().Claim(e.ctx(), s.ID(), e.spec())
	e.wants(cove.Conflict, err, "claiming an id that exists")
	_, err = e.spare().Claim(e.ctx(), cove.NewID(), e.spec(func(s *cove.Spec) { s.Template = "no-such-template" }))
	e.wants(cove.Invalid, err, "claiming with an unknown template")
	_, err = e.spare().Claim(e.ctx(), "bad", e.spec())
	e.wants(cove.Invalid, err, "claiming an id that is none")
	equal(e, len(e.ids()), 1, "the number of sandboxes")
	e.prints(s, "fine\n", "echo fine")
}

func spareOnce(e *env) {
	spare := e.spare()
	s, err := spare.Claim(e.ctx(), cove.NewID(), e.spec())
	e.must(err, "claim")
	e.destroyLater(s)
	if _, err := spare.Claim(e.ctx(), cove.NewID(), e.spec()); err == nil {
		e.Errorf("a spare was claimed twice")
	}
	e.check(spare.Discard(e.ctx()), "discard what was claimed")
	e.prints(s, "fine\n", "echo fine")
}

func spareDiscard(e *env) {
	spare := e.spare()
	e.must(spare.Discard(e.ctx()), "discard")
	e.must(spare.Discard(e.ctx()), "discard again")
	if _, err := spare.Claim(e.ctx(), cove.NewID(), e.spec()); err == nil {
		e.Errorf("a spare was claimed after it was discarded")
	}
	equal(e, len(e.ids()), 0, "the number of sandboxes")
}

func prepareUnknown(e *env) {
	e.needsPower(cove.PowerPrepare)
	m := e.mold()
	m.Template = "no-such-template"
	_, err := as[cove.Preparer](e, e.p).Prepare(e.ctx(), m)
	e.wants(cove.Invalid, err, "preparing an unknown template")
}
