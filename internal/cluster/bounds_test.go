package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/archive"
)

// A session that is started again while its tenant has all it may have stays stopped,
// whoever uses it meanwhile.
func TestStartAtTheBoundOfTheCluster(t *testing.T) {
	a, b := pair(t)
	p, q := a.member.As(somebody()), b.member.As(somebody())
	cordon(t, b, a)
	s := open(t, p, cove.Spec{User: "u"})
	say(t, p, s.ID, "echo here > file")
	if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.member.Uncordon(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	b.must(b.member.BeatNow(t.Context()))
	other := open(t, b.member.Here(somebody()), cove.Spec{})
	b.must(b.directory.PutTenant(t.Context(), &cove.Tenant{Name: somebody().Tenant, Quota: cove.Bounds{Sessions: 1}}))
	for range 3 {
		if _, err := q.Sessions().Start(t.Context(), s.ID); cove.ReasonOf(err) != cove.ReasonTenantQuota {
			t.Errorf("start: %v", err)
		}
		if _, err := q.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"}); cove.CodeOf(err) != cove.Conflict {
			t.Errorf("use of a session that could not be started: %v", err)
		}
	}
	waited := make(chan error, 1)
	go func() {
		_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{User: "u"}, OnFull: cove.WaitWhenFull})
		waited <- err
	}()
	for range 20 {
		if _, err := p.Files(s.ID).Stat(t.Context(), "file"); cove.CodeOf(err) != cove.Conflict {
			t.Errorf("while it waits: %v", err)
		}
		<-time.After(20 * time.Millisecond)
	}
	if _, err := q.Sessions().Close(t.Context(), other.ID, false); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	if got := say(t, q, s.ID, "cat file"); got != "here\n" {
		t.Errorf("it has %q", got)
	}
}

// A copy whose user and thread another node's session has is refused, as on one server.
func TestForkOfAThreadElsewhere(t *testing.T) {
	a, b := pair(t)
	p := a.member.As(somebody())
	cordon(t, b, a)
	s := open(t, p, cove.Spec{})
	b.must(b.directory.Cordon(t.Context(), "b", false))
	b.must(b.member.BeatNow(t.Context()))
	held := open(t, b.member.Here(somebody()), cove.Spec{User: "u", Thread: "t"})
	_, err := p.Snapshots().Fork(t.Context(), s.ID, cove.ForkRequest{User: "u", Thread: "t"})
	e, ok := err.(*cove.Error) //nolint:errorlint // it is what callers get
	if !ok || e.Code != cove.Conflict || fmt.Sprint(e.Details["session_id"]) != string(held.ID) {
		t.Errorf("fork: %v", err)
	}
	cordon(t, a, b)
	if _, err := p.Snapshots().Fork(t.Context(), s.ID, cove.ForkRequest{}); cove.ReasonOf(err) != cove.ReasonCapacity {
		t.Errorf("fork at a node that is drained: %v", err)
	}
}

// A session that is nobody's ends when its time is up, with its files.
func TestNobodysSessionExpires(t *testing.T) {
	shared, err := archive.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	id, at := nobodysAt(t, shared)
	s, err := at.directory.GetSession(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	expire := func() {
		t.Helper()
		if _, err := at.engine.As(somebody()).Admin().ControlTask(t.Context(), "expiry", cove.RunTask); err != nil {
			t.Fatal(err)
		}
		<-time.After(300 * time.Millisecond)
	}
	expire()
	if s, err := at.directory.GetSession(t.Context(), id); err != nil || s.State != cove.Stopped || s.Node != "" {
		t.Fatalf("before its time: %+v, %v", s, err)
	}
	s.ExpiresAt = time.Now().Add(-time.Second)
	at.must(at.directory.PutSession(t.Context(), s))
	for range 100 {
		if s, err = at.directory.GetSession(t.Context(), id); err != nil || s.State == cove.Ended {
			break
		}
		expire()
	}
	if err != nil || s.Cause != cove.ReasonSessionExpired {
		t.Errorf("after its time: %+v, %v", s, err)
	}
	for kept, err := range shared.List(t.Context()) {
		t.Errorf("its archive is still there: %s %v", kept, err)
	}
}

// A request that is made again, after the node that was at it died, is done anew.
func TestOnceAfterTheNodeDied(t *testing.T) {
	a, b := pair(t)
	p := b.member.As(somebody())
	req := cove.OpenRequest{Spec: cove.Spec{User: "u"}, IdempotencyKey: "k"}
	first, err := a.member.Here(somebody()).Sessions().Open(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	a.crash()
	// As it is when a node dies between the record and its answer.
	for name := range strings.FieldsSeq(b.redis.Do("KEYS", fmt.Sprintf("{%s}:claim:*", a.prefix))) {
		b.redis.Do("HSET", name, "result", "?"+string(first.ID))
	}
	b.redis.Do("DEL", fmt.Sprintf("{%s}:lease:a", a.prefix))
	again, err := p.Sessions().Open(t.Context(), req)
	if err != nil || again.ID == first.ID || again.Node != "b" {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// A run that was under way at a node which is gone has ended.
func TestRunOfANodeThatIsGone(t *testing.T) {
	a, b := pair(t)
	for _, end := range []func(cove.Runs, cove.ID) error{
		func(r cove.Runs, id cove.ID) error {
			run, err := r.Wait(t.Context(), id)
			if err == nil && run.State != cove.RunFailed {
				err = fmt.Errorf("it is %s", run.State)
			}
			return err
		},
		func(r cove.Runs, id cove.ID) error { return r.Delete(t.Context(), id) },
	} {
		run := &cove.Run{ID: cove.NewID(), Tenant: somebody().Tenant, Owner: somebody().Name, State: cove.RunRunning, Node: "elsewhere", CreatedAt: time.Now()}
		a.must(a.directory.PutRun(t.Context(), run))
		if err := end(b.member.As(somebody()).Runs(), run.ID); err != nil {
			t.Error(err)
		}
	}
}

// A node whose lease ran out while it was being renewed does not go on as if nothing
// had happened.
func TestLeaseRunsOutDuringABeat(t *testing.T) {
	a, b := pair(t)
	cordon(t, b, a)
	p, q := a.member.As(somebody()), b.member.As(somebody())
	s := open(t, p, cove.Spec{})
	told := func() {
		a.redis.Do("DEL", fmt.Sprintf("{%s}:lease:a", a.prefix))
		if _, err := q.Sessions().Get(t.Context(), s.ID); cove.ReasonOf(err) != cove.ReasonNodeLost {
			t.Errorf("at another node: %v", err)
		}
	}
	a.link.before.Store(&told)
	a.must(a.member.BeatNow(t.Context()))
	for range 50 {
		if _, err := p.Sessions().Get(t.Context(), s.ID); cove.ReasonOf(err) != cove.ReasonNodeLost && cove.ReasonOf(err) != cove.ReasonFenced {
			t.Fatalf("a session that is lost: %v", err)
		}
		<-time.After(time.Millisecond)
	}
}

// What cannot move is not said to.
func TestMovesIsRefused(t *testing.T) {
	a, _ := pair(t)
	_, err := a.member.As(somebody()).Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Workspace: cove.Workspace{Moves: true}}})
	if cove.CodeOf(err) != cove.Unsupported || cove.RemedyOf(err) == "" {
		t.Errorf("without a place that nodes share: %v", err)
	}
	spec := cove.Spec{Workspace: cove.Workspace{Moves: true}, Volumes: []cove.Volume{{Name: "data", Target: "/data"}}}
	if err := spec.Validate(); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("with a volume of one node: %v", err)
	}
}

// What a tenant keeps on the disks of all nodes is in one report.
func TestDiskOfAllNodes(t *testing.T) {
	a, b := pair(t)
	for _, n := range []*node{a, b} {
		at := n.member.Here(somebody())
		say(t, at, open(t, at, cove.Spec{}).ID, "seq 1 20000")
	}
	var each []cove.Bytes
	for _, n := range []*node{a, b} {
		r, err := n.member.Here(somebody()).Admin().Tenant(t.Context(), somebody().Tenant)
		if err != nil || r.Disk.Output < 100_000 {
			t.Fatalf("%+v, %v", r, err)
		}
		each = append(each, r.Disk.Output)
	}
	r, err := a.member.As(somebody()).Admin().Tenant(t.Context(), somebody().Tenant)
	if err != nil || r.Disk != (cove.DiskUse{Output: each[0] + each[1]}) {
		t.Errorf("%+v, %v; the nodes have %v", r, err, each)
	}
}
