package platformtest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func tenantCases() []testCase {
	return []testCase{
		{"others_are_not_found", othersAreNotFound},
		{"made_up_ids", madeUpIDs},
		{"ended_ones_say_nothing", endedSayNothing},
		{"lists", tenantLists},
		{"snapshots", tenantSnapshots},
		{"report", tenantReport},
	}
}

// present says whether a verb can be tried on this platform at all.
func (r *rig) present(v cove.Verb) bool {
	extras := r.h.Extras()
	return (extras.Query != nil || !strings.HasPrefix(string(v), "run.")) &&
		(extras.Code != nil || !strings.HasPrefix(string(v), "context."))
}

// othersAreNotFound tries every method that names a thing on the things of
// another tenant. None may work, and none may answer otherwise than for a
// thing that never was.
func othersAreNotFound(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	mine, theirs := r.user("acme"), r.user("globex")
	at := r.things(mine)
	never := target{
		session: cove.NewID(), snapshot: cove.NewID(), volume: cove.NewID(), run: cove.NewID(), key: cove.NewID(),
		pid: at.pid, output: at.output, language: at.language,
	}
	table := calls()
	for _, v := range slices.Sorted(maps.Keys(table)) {
		if !table[v].owned || !r.present(v) {
			continue
		}
		t.Run(string(v), func(t *testing.T) {
			other := table[v].do(r.ctx, theirs, at)
			wantCode(t, other, cove.NotFound)
			none := table[v].do(r.ctx, theirs, never)
			wantReason(t, none, cove.NotFound, cove.ReasonOf(other))
			if a, b := blank(cove.MessageOf(other), at), blank(cove.MessageOf(none), never); a != b {
				t.Errorf("another tenant's is told as %q, one that never was as %q", a, b)
			}
		})
	}
	same(t, "the file after all attempts", r.read(mine, at.session, "kept"), "kept")
	if got := r.get(mine, at.session); got.State != cove.Running {
		t.Errorf("after all attempts the session is %s", got.State)
	}
}

// blank takes the ids of a target out of a text.
func blank(text string, at target) string {
	return strings.NewReplacer(string(at.session), "ID", string(at.snapshot), "ID", string(at.volume), "ID", string(at.run), "ID", string(at.key), "ID").Replace(text)
}

func madeUpIDs(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	for _, id := range []cove.ID{"x", "..", "../../etc/passwd", "a/b", "%2e%2e", "' OR 1=1 --", cove.ID(strings.Repeat("a", 5000)), "é"} {
		_, err := p.Sessions().Get(r.ctx, id)
		wantCode(t, err, cove.NotFound, cove.Invalid)
		_, err = p.Processes(id).Exec(r.ctx, cove.ExecRequest{Line: "true"})
		wantCode(t, err, cove.NotFound, cove.Invalid)
		wantCode(t, p.Snapshots().Delete(r.ctx, id), cove.NotFound, cove.Invalid)
		wantCode(t, p.Volumes().Delete(r.ctx, string(id)), cove.NotFound, cove.Invalid)
	}
}

// endedSayNothing: why a session ended is for its own tenant to know.
func endedSayNothing(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	mine, theirs := r.user("acme"), r.user("globex")
	id := r.session(mine, cove.Spec{}).ID
	r.closeNow(mine, id)
	_, err := theirs.Sessions().Get(r.ctx, id)
	wantReason(t, err, cove.NotFound, cove.ReasonNoSession)
}

func tenantLists(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	mine, theirs := r.user("acme"), r.user("globex")
	a := r.session(mine, cove.Spec{User: "u"}).ID
	b := r.session(theirs, cove.Spec{User: "u"}).ID
	same(t, "the sessions of the first tenant", ids(all(r, mine.Sessions().List(r.ctx, cove.SessionFilter{}))), []cove.ID{a})
	for _, filter := range []cove.SessionFilter{{}, {User: "u"}, {Tenant: "acme"}} {
		same(t, "the sessions of the second tenant", ids(all(r, theirs.Sessions().List(r.ctx, filter))), []cove.ID{b})
	}
}

func tenantSnapshots(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerSnapshot)
	mine, theirs := r.user("acme"), r.user("globex")
	id := r.session(mine, cove.Spec{}).ID
	saved, err := mine.Snapshots().Snapshot(r.ctx, id, cove.SnapshotRequest{Name: "s"})
	r.must(err, "snapshot")
	for _, filter := range []cove.SnapshotFilter{{}, {Session: id}, {Tenant: "acme"}} {
		if list := all(r, theirs.Snapshots().List(r.ctx, filter)); len(list) > 0 {
			t.Errorf("%+v shows another tenant's snapshot", filter)
		}
	}
	_, err = theirs.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{Snapshot: saved.ID}})
	wantCode(t, err, cove.NotFound)
	if list := all(r, theirs.Sessions().List(r.ctx, cove.SessionFilter{})); len(list) > 0 {
		t.Errorf("opening from another tenant's snapshot left %v", ids(list))
	}
	wantCode(t, theirs.Snapshots().Delete(r.ctx, saved.ID), cove.NotFound)
	r.must(mine.Snapshots().Delete(r.ctx, saved.ID), "delete")
}

func tenantReport(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	admin := r.admin().Admin()
	quota := cove.Bounds{Sessions: 5, Memory: 64 * cove.GiB, CPUSeconds: 1000}
	r.must(admin.SetTenant(r.ctx, cove.Tenant{Name: "acme", Quota: quota}), "set a tenant")
	made := r.session(r.user("acme"), cove.Spec{})
	r.session(r.user("globex"), cove.Spec{})
	got, err := admin.Tenant(r.ctx, "acme")
	r.must(err, "get a tenant")
	if got.Name != "acme" || got.Quota != quota || got.Sessions != 1 || got.Memory != made.Spec.Resources.Memory {
		t.Errorf("the tenant with one session of %s is %+v", made.Spec.Resources.Memory, got)
	}
	r.closeNow(r.user("acme"), made.ID)
	got, err = admin.Tenant(r.ctx, "acme")
	r.must(err, "get a tenant")
	if got.Sessions != 0 || got.Memory != 0 {
		t.Errorf("the tenant whose session was closed is %+v", got)
	}
}
