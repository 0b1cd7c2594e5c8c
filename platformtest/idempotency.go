package platformtest

import (
	"testing"

	"github.com/cove-sandbox/cove"
)

func idempotencyCases() []testCase {
	return []testCase{
		{"same_request", sameRequest},
		{"other_request", otherRequest},
		{"other_tenant", otherTenantSameKey},
		{"at_once", sameKeyAtOnce},
		{"failed_request", failedRequestFreesKey},
		{"fork", forkOnce},
		{"everything", everythingOnce},
		{"everything_at_once", everythingOnceAtOnce},
		{"key", keyOnce},
		{"foreground", onceIsForBackground},
		{"gone", onceGone},
		{"restart", onceAcrossRestarts},
	}
}

// keyed is a request with an idempotency key and without user and thread, so
// that only the key can find its session.
func keyed(key, project string) cove.OpenRequest {
	return cove.OpenRequest{IdempotencyKey: key, Spec: cove.Spec{Project: project}}
}

func sameRequest(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	one, err := p.Sessions().Open(r.ctx, keyed("k", "p"))
	r.must(err, "open")
	two, err := p.Sessions().Open(r.ctx, keyed("k", "p"))
	r.must(err, "open again")
	if one.ID != two.ID {
		t.Errorf("one key and one request gave %s and %s", one.ID, two.ID)
	}
	other, err := p.Sessions().Open(r.ctx, keyed("k2", "p"))
	r.must(err, "open with another key")
	if other.ID == one.ID {
		t.Error("another key gave the same session")
	}
}

func otherRequest(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	_, err := p.Sessions().Open(r.ctx, keyed("k", "p"))
	r.must(err, "open")
	_, err = p.Sessions().Open(r.ctx, keyed("k", "q"))
	wantReason(t, err, cove.Conflict, cove.ReasonKeyReused)
}

func otherTenantSameKey(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	one, err := r.user("acme").Sessions().Open(r.ctx, keyed("k", "p"))
	r.must(err, "open")
	two, err := r.user("globex").Sessions().Open(r.ctx, keyed("k", "q"))
	r.must(err, "open with another tenant's key")
	if one.ID == two.ID {
		t.Error("two tenants share a session through an idempotency key")
	}
}

func sameKeyAtOnce(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	var answers []<-chan answer[*cove.Session]
	for range 20 {
		answers = append(answers, async(func() (*cove.Session, error) { return p.Sessions().Open(r.ctx, keyed("k", "p")) }))
	}
	seen := map[cove.ID]bool{}
	for _, ch := range answers {
		a := receive(r, ch, "an answer to Open")
		r.must(a.err, "open")
		seen[a.value.ID] = true
	}
	if n := len(all(r, p.Sessions().List(r.ctx, cove.SessionFilter{}))); len(seen) != 1 || n != 1 {
		t.Errorf("20 requests with one key got %d sessions; %d are listed", len(seen), n)
	}
}

func failedRequestFreesKey(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 1})
	p := r.user("acme")
	held := r.session(p, cove.Spec{})
	_, err := p.Sessions().Open(r.ctx, keyed("k", "p"))
	wantCode(t, err, cove.Exhausted)
	r.closeNow(p, held.ID)
	_, err = p.Sessions().Open(r.ctx, keyed("k", "p"))
	r.must(err, "try again with the key of a request that failed")
}

func forkOnce(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerFork)
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	one, err := p.Snapshots().Fork(r.ctx, id, cove.ForkRequest{IdempotencyKey: "k"})
	r.must(err, "fork")
	two, err := p.Snapshots().Fork(r.ctx, id, cove.ForkRequest{IdempotencyKey: "k"})
	r.must(err, "fork again")
	if one.ID != two.ID || !one.Created || two.Created {
		t.Errorf("one key gave the forks %s, created %t, and %s, created %t", one.ID, one.Created, two.ID, two.Created)
	}
	_, err = p.Snapshots().Fork(r.ctx, id, cove.ForkRequest{IdempotencyKey: "k", User: "else"})
	wantReason(t, err, cove.Conflict, cove.ReasonKeyReused)
	other := r.session(p, cove.Spec{}).ID
	_, err = p.Snapshots().Fork(r.ctx, other, cove.ForkRequest{IdempotencyKey: "k"})
	wantReason(t, err, cove.Conflict, cove.ReasonKeyReused)
	_, err = p.Sessions().Open(r.ctx, cove.OpenRequest{IdempotencyKey: "k"})
	wantReason(t, err, cove.Conflict, cove.ReasonKeyReused)
}
