package platformtest

import (
	"testing"

	"github.com/cove-sandbox/cove"
)

func admissionCases() []testCase {
	return []testCase{
		{"reject", rejectWhenFull},
		{"memory", memoryBound},
		{"stopped_ones_need_no_room", stoppedNeedNoRoom},
		{"live_ones_are_found_when_full", liveFoundWhenFull},
		{"failed_opens_free_their_room", failedOpensFreeRoom},
		{"never_over_the_bound", neverOverBound},
		{"everybody_gets_a_turn", everybodyGetsATurn},
	}
}

func rejectWhenFull(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 2})
	p := r.user("acme")
	one := r.session(p, cove.Spec{})
	r.session(p, cove.Spec{})
	for _, tenant := range []string{"acme", "globex"} {
		for _, onFull := range []cove.OnFull{"", cove.RejectWhenFull} {
			_, err := r.user(tenant).Sessions().Open(r.ctx, cove.OpenRequest{OnFull: onFull})
			wantReason(t, err, cove.Exhausted, cove.ReasonCapacity)
			if number(err, "retry_after") <= 0 {
				t.Errorf("the error does not say when to come back: %v", detail(err, "retry_after"))
			}
		}
	}
	if n := len(all(r, p.Sessions().List(r.ctx, cove.SessionFilter{}))); n != 2 {
		t.Errorf("rejected opens left %d sessions", n)
	}
	r.closeNow(p, one.ID)
	r.session(r.user("globex"), cove.Spec{})
}

func memoryBound(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxMemory: 150 * cove.MiB, Flavors: threeFlavors()})
	p := r.user("acme")
	r.session(p, cove.Spec{})
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{})
	wantReason(t, err, cove.Exhausted, cove.ReasonCapacity)
	r.session(p, cove.Spec{Flavor: "tiny"})
}

// threeFlavors are small enough to count with: small has 100 MiB.
func threeFlavors() map[string]cove.Resources {
	return map[string]cove.Resources{
		"tiny":  {CPUs: 0.5, Memory: 50 * cove.MiB, PIDs: 64},
		"small": {CPUs: 1, Memory: 100 * cove.MiB, PIDs: 64},
		"large": {CPUs: 2, Memory: 400 * cove.MiB, PIDs: 64},
	}
}

func stoppedNeedNoRoom(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 1})
	p := r.user("acme")
	one := r.session(p, cove.Spec{User: "u"})
	r.stop(p, one.ID)
	two := r.session(p, cove.Spec{})
	_, err := p.Sessions().Start(r.ctx, one.ID)
	wantReason(t, err, cove.Exhausted, cove.ReasonCapacity)
	_, err = p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{User: "u"}})
	wantReason(t, err, cove.Exhausted, cove.ReasonCapacity)
	if got := r.get(p, one.ID).State; got != cove.Stopped {
		t.Errorf("a session that found no room to start is %s", got)
	}
	r.closeNow(p, two.ID)
	_, err = p.Sessions().Start(r.ctx, one.ID)
	r.must(err, "start when there is room")
}

func liveFoundWhenFull(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 1})
	p := r.user("acme")
	made := r.session(p, cove.Spec{User: "u"})
	if again := r.session(p, cove.Spec{User: "u"}); again.ID != made.ID {
		t.Error("a full platform does not find a live session")
	}
}

// neverOverBound: of many that come at once, as many are let in as there is
// room for, and no more.
func neverOverBound(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 5})
	var answers []<-chan answer[*cove.Session]
	for n := range 20 {
		p := r.user([]string{"acme", "globex"}[n%2])
		answers = append(answers, async(func() (*cove.Session, error) { return p.Sessions().Open(r.ctx, cove.OpenRequest{}) }))
	}
	admitted := 0
	for _, ch := range answers {
		if a := receive(r, ch, "an answer to Open"); a.err == nil {
			admitted++
		} else {
			wantReason(t, a.err, cove.Exhausted, cove.ReasonCapacity)
		}
	}
	if got := r.stats(r.admin()).ActiveSessions; admitted != 5 || got != 5 {
		t.Errorf("with room for 5, %d were let in and %d are active", admitted, got)
	}
}

// everybodyGetsATurn: with a queue, all who come at once are served in the end.
func everybodyGetsATurn(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 2, QueueLength: 50})
	var answers []<-chan answer[cove.ID]
	for n := range 20 {
		p := r.user([]string{"acme", "globex", "initech"}[n%3])
		answers = append(answers, async(func() (cove.ID, error) {
			made, err := p.Sessions().Open(r.ctx, cove.OpenRequest{OnFull: cove.WaitWhenFull})
			if err != nil {
				return "", err
			}
			return p.Sessions().Close(r.ctx, made.ID, false)
		}))
	}
	for _, ch := range answers {
		a := receive(r, ch, "somebody's turn")
		r.must(a.err, "wait, open and close")
	}
	if got := r.stats(r.admin()); got.ActiveSessions != 0 || got.Queued != 0 {
		t.Errorf("in the end %d sessions are active and %d callers wait", got.ActiveSessions, got.Queued)
	}
}

func failedOpensFreeRoom(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 1})
	p := r.user("acme")
	for range 3 {
		_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{User: "u", Template: "no-such-template"}})
		wantField(t, err, cove.Invalid, "template")
	}
	r.session(p, cove.Spec{User: "u"})
}
