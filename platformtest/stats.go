package platformtest

import (
	"testing"

	"github.com/cove-sandbox/cove"
)

func statsCases() []testCase {
	return []testCase{
		{"add_up", statsAddUp},
		{"reuse_rate", reuseRate},
		{"own_tenant", statsOwnTenant},
	}
}

func (r *rig) stats(p cove.Platform) *cove.Stats {
	r.t.Helper()
	stats, err := p.Admin().Stats(r.ctx)
	r.must(err, "stats")
	return stats
}

func statsAddUp(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 7, MaxMemory: cove.GiB, Flavors: threeFlavors()})
	p := r.user("acme")
	r.session(p, cove.Spec{})
	r.session(r.user("globex"), cove.Spec{Flavor: "tiny"})
	stopped := r.session(p, cove.Spec{}).ID
	r.stop(p, stopped)
	got := r.stats(r.admin())
	if got.ActiveSessions != 2 || got.MaxSessions != 7 || got.MaxMemory != cove.GiB || got.Memory != 150*cove.MiB || got.CPUs <= 0 {
		t.Errorf("two sessions with 150 MiB and a stopped one: %+v", got)
	}
	same(t, "by state", got.SessionsByState, map[cove.State]int{cove.Running: 2, cove.Stopped: 1})
	share := got.ByProvider[got.Provider]
	if share == nil || len(got.ByProvider) != 1 || share.Active != 2 || share.ByState[cove.Stopped] != 1 || share.Memory != got.Memory || share.CPUs != got.CPUs {
		t.Errorf("by provider: %+v", got.ByProvider)
	}
	flavors := 0
	for _, n := range got.SessionsByFlavor {
		flavors += n
	}
	if got.SessionsByFlavor["tiny"] != 1 || flavors < 2 {
		t.Errorf("by flavor: %v", got.SessionsByFlavor)
	}
	if got.Provider == "" || got.Node == "" || got.Uptime < 0 || got.Queued != 0 || got.PoolAvailable > got.PoolSize {
		t.Errorf("the numbers are %+v", got)
	}
	r.closeNow(p, stopped)
	if _, there := r.stats(r.admin()).SessionsByState[cove.Ended]; there {
		t.Error("ended sessions are counted")
	}
}

func reuseRate(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	if rate := r.stats(r.admin()).ReuseRate(); rate != 0 {
		t.Errorf("before anything was opened, the reuse rate is %v", rate)
	}
	id := r.session(p, cove.Spec{User: "u"}).ID
	for range 3 {
		r.session(p, cove.Spec{User: "u"})
	}
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{Flavor: "gigantic"}})
	wantCode(t, err, cove.Invalid)
	r.sh(p, id, "true")
	r.sh(p, id, "true")
	got := r.stats(r.admin())
	if got.Opened != 4 || got.Reused != 3 || got.ReuseRate() != 0.75 || got.Executions != 2 {
		t.Errorf("after 4 opens of one key and 2 programs: opened %d, reused %d, rate %v, executions %d",
			got.Opened, got.Reused, got.ReuseRate(), got.Executions)
	}
}

// statsOwnTenant: who is no admin sees the numbers of its own tenant.
func statsOwnTenant(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.session(r.user("acme"), cove.Spec{})
	r.session(r.user("globex"), cove.Spec{})
	r.session(r.user("globex"), cove.Spec{})
	for tenant, want := range map[string]int{"acme": 1, "globex": 2, "nobody": 0} {
		if got := r.stats(r.user(tenant)); got.ActiveSessions != want || got.SessionsByState[cove.Running] != want {
			t.Errorf("%s sees %d sessions, %v; want %d", tenant, got.ActiveSessions, got.SessionsByState, want)
		} else if got.Opened != int64(want) {
			t.Errorf("%s sees that %d sessions were opened; want %d", tenant, got.Opened, want)
		}
	}
	if got := r.stats(r.admin()).ActiveSessions; got != 3 {
		t.Errorf("the operator sees %d sessions, want 3", got)
	}
}
