package providertest

import (
	"slices"

	"github.com/cove-sandbox/cove"
)

func powerTests() []test {
	return []test{
		{"capabilities_agree_with_interfaces", powersAgree},
		{"powers_are_known", powersKnown},
		{"what_is_not_offered_is_unsupported", notOffered},
		{"without_attach_nothing_can_be_attached", attachNever},
	}
}

func (e *env) hasPower(p cove.Power) bool { return slices.Contains(e.caps.Powers, p) }

func powersAgree(e *env) {
	s := e.sandbox()
	found := map[cove.Power]bool{}
	_, found[cove.PowerPause] = cove.As[cove.Pauser](s)
	_, found[cove.PowerSnapshot] = cove.As[cove.Snapshotter](s)
	_, found[cove.PowerFork] = cove.As[cove.Forker](s)
	_, found[cove.PowerDial] = cove.As[cove.Dialer](s)
	_, found[cove.PowerResume] = cove.As[cove.Resumer](s)
	_, found[cove.PowerPrepare] = cove.As[cove.Preparer](e.p)
	_, found[cove.PowerSolo] = cove.As[cove.Soloist](e.p)
	for power, has := range found {
		equal(e, has, e.hasPower(power), "whether there is the interface of the power "+string(power))
	}
	_, keeps := cove.As[cove.SnapshotKeeper](e.p)
	equal(e, keeps, e.hasPower(cove.PowerSnapshot), "whether the provider keeps snapshots")
}

func powersKnown(e *env) {
	seen := map[cove.Power]bool{}
	for _, p := range e.caps.Powers {
		if !slices.Contains(cove.Powers(), p) || seen[p] {
			e.Errorf("the power %q is unknown or listed twice", p)
		}
		seen[p] = true
	}
}

// notOffered has nothing to demand of a provider that can do it all.
func notOffered(e *env) {
	if !e.hasPower(cove.PowerTerminal) {
		_, err := e.sandbox().Start(e.ctx(), cove.Command{Argv: []string{"true"}, TTY: &cove.WindowSize{Cols: 80, Rows: 24}})
		e.wants(cove.Unsupported, err, "a terminal")
	}
	if !e.hasPower(cove.PowerSnapshot) {
		_, err := e.p.Create(e.ctx(), cove.NewID(), e.spec(from(cove.NewID())))
		e.wants(cove.Unsupported, err, "creating from a snapshot")
	}
	if !e.caps.Volumes {
		_, err := e.p.Create(e.ctx(), cove.NewID(), e.spec(func(s *cove.Spec) {
			s.Volumes = []cove.Volume{{Source: e.TempDir(), Target: "/data"}}
		}))
		e.wants(cove.Unsupported, err, "a volume")
	}
}

func attachNever(e *env) {
	if e.hasPower(cove.PowerAttach) {
		return // the group attach is about that
	}
	s := e.sandbox()
	e.restart()
	_, err := e.p.Attach(e.ctx(), s.ID())
	e.wants(cove.NotFound, err, "attaching after a restart")
	e.check(e.p.Remove(e.ctx(), s.ID()), "remove what is left")
	equal(e, len(e.ids()), 0, "the number of sandboxes")
}

// as finds an interface that the capabilities promise.
func as[T any](e *env, v any) T {
	e.Helper()
	t, ok := cove.As[T](v)
	if !ok {
		e.Fatalf("the capabilities promise %T, and there is none", t)
	}
	return t
}
