package platformtest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func eventCases() []testCase {
	return []testCase{
		{"intent_and_outcome", intentAndOutcome},
		{"reads_leave_none", readsLeaveNone},
		{"failures_are_told", failuresAreTold},
		{"no_content", noContent},
		{"filters", eventFilters},
		{"follow", followEvents},
	}
}

func (r *rig) events(f cove.EventFilter) []cove.Event {
	r.t.Helper()
	return all(r, r.admin().Admin().Events(r.ctx, f))
}

// pairs checks that each intent has its outcome and returns the outcomes.
func (r *rig) pairs(list []cove.Event) []cove.Event {
	r.t.Helper()
	intents := map[int64]cove.Event{}
	var outcomes []cove.Event
	var last int64
	for _, e := range list {
		if e.Seq <= last || e.Time.IsZero() {
			r.t.Errorf("line %d comes after %d, at %s", e.Seq, last, e.Time)
		}
		last = e.Seq
		switch e.Phase {
		case cove.Intent:
			intents[e.Seq] = e
		case cove.AfterIt:
			i, ok := intents[e.Intent]
			if !ok || i.Kind != e.Kind || i.Principal != e.Principal || i.Tenant != e.Tenant {
				r.t.Errorf("the outcome %+v has the intent %+v", e, i)
			}
			delete(intents, e.Intent)
			outcomes = append(outcomes, e)
		case cove.EngineNote:
		}
	}
	if len(intents) > 0 {
		r.t.Errorf("intents without an outcome: %+v", intents)
	}
	return outcomes
}

// intentAndOutcome: every change is told twice, before and after.
func intentAndOutcome(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	made := r.session(p, cove.Spec{})
	r.write(p, made.ID, "f", "x")
	r.sh(p, made.ID, "true")
	_, err := p.Sessions().Renew(r.ctx, made.ID, time.Hour)
	r.must(err, "renew")
	r.stop(p, made.ID)
	r.closeNow(p, made.ID)
	outcomes := r.pairs(r.events(cove.EventFilter{Tenant: "acme"}))
	var kinds []string
	for _, e := range outcomes {
		kinds = append(kinds, e.Kind)
		if e.Principal != made.Owner || e.Tenant != "acme" || e.Session != made.ID || e.Provider != made.Provider || e.Code != "" {
			t.Errorf("%s is told as %+v", e.Kind, e)
		}
	}
	same(t, "the changes", kinds, []string{"session.open", "file.write", "process.exec", "session.renew", "session.stop", "session.close"})
	if e := outcomes[2]; e.Outcome != cove.Exited {
		t.Errorf("a program that ended well is told as %+v", e)
	}
}

func readsLeaveNone(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	at := r.things(p)
	seq := r.newest()
	table := calls()
	for _, v := range cove.Verbs() {
		if v.Trait().Reads && v.Trait().Scope != cove.ScopeAdmin && r.present(v) {
			if err := table[v].do(r.ctx, p, at); cove.CodeOf(err) == cove.Denied {
				t.Errorf("%s: %v", v, err)
			}
		}
	}
	if lines := r.events(cove.EventFilter{After: seq}); len(lines) > 0 {
		t.Errorf("allowed reads are in the journal: %+v", lines)
	}
}

func failuresAreTold(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{Flavor: "gigantic"}})
	wantCode(t, err, cove.Invalid)
	id := r.session(p, cove.Spec{}).ID
	r.exec(p, id, cove.ExecRequest{Line: "sleep 600", Limits: cove.Limits{Wall: 100 * time.Millisecond}})
	outcomes := r.pairs(r.events(cove.EventFilter{Tenant: "acme"}))
	if len(outcomes) != 3 || outcomes[0].Code != cove.Invalid || outcomes[1].Code != "" || outcomes[2].Outcome != cove.TimedOut {
		t.Errorf("a bad request, a good one and a timeout are told as %+v", outcomes)
	}
}

// noContent: what callers write stays out of the journal, whatever its road.
func noContent(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	const hush = "hush-7f3a9"
	id := r.session(p, cove.Spec{Env: map[string]string{"TOKEN": hush}}).ID
	r.exec(p, id, cove.ExecRequest{Line: "echo " + hush, Env: map[string]string{"A": hush}, Stdin: strings.NewReader(hush)})
	r.exec(p, id, cove.ExecRequest{Argv: []string{"echo", hush}})
	pid := r.background(p, id, cove.ExecRequest{Line: "cat; echo " + hush, KeepStdin: true})
	r.must(p.Processes(id).Input(r.ctx, pid, []byte(hush), true), "input")
	r.wait(p, id, pid)
	r.write(p, id, "f", hush)
	if lang := r.h.Extras().Code; lang != nil {
		_, err := p.Contexts(id).Run(r.ctx, cove.CodeRequest{Language: lang.Name, Code: lang.Assign + "\n" + hush})
		r.must(err, "run code")
	}
	raw, err := json.Marshal(r.events(cove.EventFilter{}))
	r.must(err, "marshal the events")
	if at := strings.Index(string(raw), hush); at >= 0 {
		t.Errorf("the journal holds what a caller wrote: %s", raw[max(0, at-200):min(len(raw), at+100)])
	}
}

func eventFilters(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	mine, theirs := r.user("acme"), r.user("globex")
	a, b := r.session(mine, cove.Spec{}).ID, r.session(theirs, cove.Spec{}).ID
	r.sh(mine, a, "true")
	everything := r.events(cove.EventFilter{})
	for name, f := range map[string]cove.EventFilter{
		"tenant":  {Tenant: "acme"},
		"session": {Session: b},
		"kind":    {Kind: string(cove.ProcessExec)},
		"prefix":  {Kind: "session."},
		"after":   {After: everything[1].Seq},
		"none":    {Kind: "no.such.kind"},
	} {
		want := slices.DeleteFunc(slices.Clone(everything), func(e cove.Event) bool { return !f.Match(&e) })
		same(t, name, r.events(f), want)
	}
	same(t, "limit", r.events(cove.EventFilter{Limit: 3}), everything[:3])
	same(t, "tail", r.events(cove.EventFilter{Tail: 2}), everything[len(everything)-2:])
	same(t, "a long tail", r.events(cove.EventFilter{Tail: 1000}), everything)
	same(t, "tail after a line", r.events(cove.EventFilter{Tail: 1, After: everything[1].Seq}), everything[2:])
	r.must(first(r.admin().Admin().Events(r.ctx, cove.EventFilter{})), "leave the journal early")
}

func followEvents(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	old := r.session(p, cove.Spec{}).ID
	ctx, leave := context.WithCancel(r.ctx)
	defer leave()
	lines, end := make(chan cove.Event, 100), make(chan error, 1)
	admin := r.admin().Admin()
	go func() {
		defer close(end)
		for e, err := range admin.Events(ctx, cove.EventFilter{Tenant: "acme", Kind: "session.", Follow: true}) {
			if err != nil {
				end <- err
				return
			}
			lines <- e
		}
	}()
	for range 2 {
		if e := receive(r, lines, "an old line"); e.Kind != string(cove.SessionOpen) {
			t.Errorf("the first lines are %+v", e)
		}
	}
	r.session(r.user("globex"), cove.Spec{})
	r.sh(p, old, "true")
	r.closeNow(p, old)
	for range 2 {
		if e := receive(r, lines, "a new line"); e.Kind != string(cove.SessionClose) || e.Session != old {
			t.Errorf("a new line is %+v", e)
		}
	}
	leave()
	select {
	case err := <-end:
		if err != nil && cove.CodeOf(err) != cove.Canceled {
			t.Errorf("following ended with %v", err)
		}
	case <-r.ctx.Done():
		t.Error("following goes on after its caller has left")
	}
}
