package platformtest

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func retryCases() []testCase {
	return []testCase{
		{"runs_once_more", retryRuns},
		{"together", retryTogether},
		{"code", retryCode},
		{"never", retryNever},
		{"not_what_ran", retryNotWhatRan},
		{"network", retryNetwork},
		{"no_room", retryNoRoom},
	}
}

// expireNow lets a session expire, long before it would.
func (r *rig) expireNow(p cove.Platform, id cove.ID) {
	r.t.Helper()
	s, err := p.Sessions().Renew(r.ctx, id, 60*time.Millisecond)
	r.must(err, "renew")
	r.pass(s.ExpiresAt)
}

// recreated checks that something ran in a new session, and returns its id.
func recreated(t *testing.T, x *cove.Execution, old cove.ID) cove.ID {
	t.Helper()
	if !x.Recreated || x.Session == old || !x.Session.Valid() {
		t.Fatalf("it ran in %q in the place of %q, recreated %v", x.Session, old, x.Recreated)
	}
	return x.Session
}

func retryRuns(t *testing.T, s *suite) {
	r := s.start(t, Options{AutoRetry: new(true)})
	p := r.user("acme")
	old := r.session(p, cove.Spec{User: "u", Thread: "t", Idle: 10 * time.Minute, OnEnd: cove.EndClose, Env: map[string]string{"NAME": "ada"}})
	procs, files := p.Processes(old.ID), p.Files(old.ID)
	first := r.exec(p, old.ID, cove.ExecRequest{Line: "echo here >f"})
	if first.Recreated || first.Session != old.ID {
		t.Errorf("the first run was in %q, recreated %v; the session is %q", first.Session, first.Recreated, old.ID)
	}
	r.expireNow(p, old.ID)
	_, err := files.Read(r.ctx, "f", 0, 0)
	wantReason(t, err, cove.NotFound, cove.ReasonSessionExpired) // nothing but a run opens it again

	var said strings.Builder
	x, err := procs.Exec(r.ctx, cove.ExecRequest{
		Line: `cat; echo "$NAME"; cat f || echo no file`, Stdin: strings.NewReader("input\n"),
		OnOutput: func(c cove.Chunk) {
			if c.Stream == cove.Stdout {
				said.Write(c.Data)
			}
		},
	})
	r.must(err, "exec in an expired session")
	now := recreated(t, x, old.ID)
	same(t, "the output", string(x.Stdout.Data), "input\nada\nno file\n")
	same(t, "the output as it came", said.String(), "input\nada\nno file\n")

	r.must(files.Write(r.ctx, "f", strings.NewReader("new"), 0), "write")
	if x := r.exec(p, old.ID, cove.ExecRequest{Line: "cat f"}); x.Recreated || x.Session != now || string(x.Stdout.Data) != "new" {
		t.Errorf("the old id leads to %q, recreated %v, output %q", x.Session, x.Recreated, x.Stdout.Data)
	}
	if got := r.get(p, old.ID); got.ID != now || got.Spec.User != "u" || got.Spec.Idle != 10*time.Minute {
		t.Errorf("the old id stands for %s, opened by %+v", got.ID, got.Spec)
	}
	r.expireNow(p, now)
	again := recreated(t, r.exec(p, now, cove.ExecRequest{Line: "true"}), now)
	r.closeNow(p, old.ID)
	_, err = p.Processes(again).Exec(r.ctx, cove.ExecRequest{Line: "true"})
	wantReason(t, err, cove.NotFound, cove.ReasonSessionClosed)
	if list := all(r, p.Sessions().List(r.ctx, cove.SessionFilter{})); len(list) > 0 {
		t.Errorf("after all was closed there is %v", ids(list))
	}
}

func retryTogether(t *testing.T, s *suite) {
	r := s.start(t, Options{AutoRetry: new(true)})
	p := r.user("acme")
	old := r.session(p, cove.Spec{OnEnd: cove.EndClose})
	r.expireNow(p, old.ID)
	var answers []<-chan answer[*cove.Execution]
	for range 8 {
		answers = append(answers, async(func() (*cove.Execution, error) {
			return p.Processes(old.ID).Exec(r.ctx, cove.ExecRequest{Line: "true"})
		}))
	}
	seen, told := map[cove.ID]bool{}, 0
	for _, ch := range answers {
		a := receive(r, ch, "an answer")
		r.must(a.err, "exec")
		if seen[a.value.Session] = true; a.value.Recreated {
			told++ // not who came so late that the new session was there
		}
	}
	if list := all(r, p.Sessions().List(r.ctx, cove.SessionFilter{})); len(seen) != 1 || seen[old.ID] || len(list) != 1 || told == 0 {
		t.Errorf("many calls at once opened %v and ran in %v in the place of %s; %d were told so", ids(list), seen, old.ID, told)
	}
}

func retryCode(t *testing.T, s *suite) {
	r := s.start(t, Options{AutoRetry: new(true)})
	lang := r.h.Extras().Code
	if lang == nil {
		t.Skip("this platform runs no code")
	}
	p := r.user("acme")
	old := r.session(p, cove.Spec{OnEnd: cove.EndClose})
	_, err := p.Contexts(old.ID).Run(r.ctx, cove.CodeRequest{Language: lang.Name, Code: lang.Assign})
	r.must(err, "run code")
	named, err := p.Contexts(old.ID).Open(r.ctx, cove.ContextSpec{Language: lang.Name})
	r.must(err, "open a context")
	r.expireNow(p, old.ID)
	_, err = p.Contexts(old.ID).Run(r.ctx, cove.CodeRequest{Context: named.Name, Code: lang.Assign})
	wantReason(t, err, cove.NotFound, cove.ReasonSessionExpired)
	out, err := p.Contexts(old.ID).Run(r.ctx, cove.CodeRequest{Language: lang.Name, Code: lang.Assign})
	r.must(err, "run code in an expired session")
	recreated(t, &out.Execution, old.ID)
}

func retryNever(t *testing.T, s *suite) {
	r := s.start(t, Options{AutoRetry: new(true)})
	p := r.user("acme")
	ours, closed := r.session(p, cove.Spec{OnEnd: cove.EndClose}), r.session(p, cove.Spec{OnEnd: cove.EndClose})
	r.closeNow(p, closed.ID)
	_, err := p.Processes(closed.ID).Exec(r.ctx, cove.ExecRequest{Line: "true"})
	wantReason(t, err, cove.NotFound, cove.ReasonSessionClosed)
	_, err = p.Processes(cove.NewID()).Exec(r.ctx, cove.ExecRequest{Line: "true"})
	wantReason(t, err, cove.NotFound, cove.ReasonNoSession)
	r.expireNow(p, ours.ID)

	stranger := r.as(cove.Principal{Name: "user-acme", Tenant: "acme", Scopes: without(cove.ScopeAdmin)})
	_, err = stranger.Processes(ours.ID).Exec(r.ctx, cove.ExecRequest{Line: "true"})
	wantReason(t, err, cove.NotFound, cove.ReasonSessionExpired) // others opened it
	stream := io.MultiReader(strings.NewReader("from a stream"))
	_, err = p.Processes(ours.ID).Exec(r.ctx, cove.ExecRequest{Line: "cat", Stdin: stream})
	wantReason(t, err, cove.NotFound, cove.ReasonSessionExpired)
	_, err = p.Processes(ours.ID).Start(r.ctx, cove.ExecRequest{Line: "true"})
	wantReason(t, err, cove.NotFound, cove.ReasonSessionExpired)
	if list := all(r, p.Sessions().List(r.ctx, cove.SessionFilter{})); len(list) > 0 {
		t.Errorf("what must not be repeated opened %v", ids(list))
	}
	recreated(t, r.exec(p, ours.ID, cove.ExecRequest{Line: "true"}), ours.ID)
}

// retryNotWhatRan: a session that ends while something runs in it has expired,
// too, and what ran must not run again.
func retryNotWhatRan(t *testing.T, s *suite) {
	r := s.start(t, Options{AutoRetry: new(true)})
	p := r.user("acme")
	old := r.session(p, cove.Spec{User: "u", Thread: "t", Lifetime: 2 * shortest})
	running := async(func() (*cove.Execution, error) {
		return p.Processes(old.ID).Exec(r.ctx, cove.ExecRequest{Line: "sleep 60"})
	})
	r.eventually("the program runs", func() bool { return r.get(p, old.ID).Busy })
	r.pass(old.CreatedAt.Add(2 * shortest))
	_, err := r.admin().Admin().ControlTask(r.ctx, "expiry", cove.RunTask)
	r.must(err, "run the expiry task")
	a := receive(r, running, "the end of the program")
	if a.err == nil && (a.value.Recreated || a.value.Outcome == cove.Exited) {
		t.Errorf("a program that ended with its session: %+v", a.value)
	}
	begun := all(r, r.admin().Admin().Events(r.ctx, cove.EventFilter{Kind: string(cove.ProcessExec)}))
	n := 0
	for _, e := range begun {
		if e.Phase == cove.Intent {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the program was begun %d times", n)
	}
}

func retryNetwork(t *testing.T, s *suite) {
	r := s.start(t, Options{AutoRetry: new(true)})
	if r.capabilities().Isolation.Network != cove.Hard {
		t.Skip("the provider does not enforce networks")
	}
	p := r.user("acme")
	old := r.session(p, cove.Spec{OnEnd: cove.EndClose, Network: cove.Network{Mode: cove.NetworkAllow, Allow: []string{"example.com", "example.org"}}})
	_, err := p.Sessions().SetNetwork(r.ctx, old.ID, cove.Network{Mode: cove.NetworkAllow, Allow: []string{"example.com"}})
	r.must(err, "set the network")
	r.expireNow(p, old.ID)
	recreated(t, r.exec(p, old.ID, cove.ExecRequest{Line: "true"}), old.ID)
	same(t, "the network of the new session", r.get(p, old.ID).Spec.Network, cove.Network{Mode: cove.NetworkAllow, Allow: []string{"example.com"}})
}

func retryNoRoom(t *testing.T, s *suite) {
	r := s.start(t, Options{AutoRetry: new(true), MaxSessions: 1})
	p := r.user("acme")
	old := r.session(p, cove.Spec{OnEnd: cove.EndClose})
	r.expireNow(p, old.ID)
	_, err := r.admin().Admin().ControlTask(r.ctx, "expiry", cove.RunTask)
	r.must(err, "run the expiry task")
	other := r.session(r.user("other"), cove.Spec{})
	_, err = p.Processes(old.ID).Exec(r.ctx, cove.ExecRequest{Line: "true"})
	wantReason(t, err, cove.Exhausted, cove.ReasonCapacity)
	if text := cove.MessageOf(err); !strings.Contains(text, "expired") {
		t.Errorf("the message does not say why a session was opened: %s", text)
	}
	r.closeNow(r.user("other"), other.ID)
	recreated(t, r.exec(p, old.ID, cove.ExecRequest{Line: "true"}), old.ID)
}
