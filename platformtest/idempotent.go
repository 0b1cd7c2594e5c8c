package platformtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

// creation is one way to make something with an idempotency key. with changes the
// request; what is made is told by a text of its own.
type creation func(key, with string) (string, error)

// creations are all but opening a session and forking one, which have cases of
// their own.
func (r *rig) creations(p cove.Platform, id cove.ID) map[string]creation {
	all := map[string]creation{
		"start": func(key, with string) (string, error) {
			info, err := p.Processes(id).Start(r.ctx, cove.ExecRequest{
				Line: "echo ran >>" + with + "; read line", Stdin: strings.NewReader("some input"), KeepStdin: true, IdempotencyKey: key,
			})
			if err != nil {
				return "", err
			}
			return string(info.OutputID), nil
		},
	}
	if r.has(cove.PowerSnapshot) {
		all["snapshot"] = func(key, with string) (string, error) {
			s, err := p.Snapshots().Snapshot(r.ctx, id, cove.SnapshotRequest{Name: with, IdempotencyKey: key})
			if err != nil {
				return "", err
			}
			return string(s.ID), nil
		}
	}
	extras := r.h.Extras()
	if extras.Code != nil {
		all["context"] = func(key, with string) (string, error) {
			c, err := p.Contexts(id).Open(r.ctx, cove.ContextSpec{Language: extras.Code.Name, Dir: "/workspace/" + with, IdempotencyKey: key})
			if err != nil {
				return "", err
			}
			return c.Name, nil
		}
	}
	if extras.Query != nil {
		all["run"] = func(key, with string) (string, error) {
			req := extras.Query.Good
			req.IdempotencyKey, req.MaxRows = key, len(with)
			run, err := p.Runs().Submit(r.ctx, req)
			if err != nil {
				return "", err
			}
			return string(run.ID), nil
		}
	}
	if extras.Data != nil {
		all["chat"] = func(key, with string) (string, error) {
			a, err := p.Chats().Send(r.ctx, cove.ChatRequest{Message: extras.Data.Message, Thread: with, IdempotencyKey: key})
			if err != nil {
				return "", err
			}
			return string(a.Message.ID), nil
		}
	}
	return all
}

// has says whether the provider has a power.
func (r *rig) has(power cove.Power) bool {
	r.t.Helper()
	return slices.Contains(r.capabilities().Powers, power)
}

// written waits until a file is of a size: a program in the background was started
// and may not have come to it yet.
func (r *rig) written(p cove.Platform, id cove.ID, name string, size int) {
	r.t.Helper()
	r.eventually("a program has written "+name, func() bool {
		info, err := p.Files(id).Stat(r.ctx, name)
		return err == nil && int(info.Size) >= size
	})
}

// everythingOnce: what creates does so once for a key and a request.
func everythingOnce(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id, other := r.session(p, cove.Spec{}).ID, r.session(p, cove.Spec{}).ID
	elsewhere := r.creations(p, other)
	for name, create := range r.creations(p, id) {
		t.Run(name, func(t *testing.T) {
			one, err := create(name, "f")
			r.must(err, "the first request")
			two, err := create(name, "f")
			r.must(err, "the second request")
			if one != two || one == "" {
				t.Errorf("one key and one request made %q and %q", one, two)
			}
			third, err := create(name+" else", "f")
			r.must(err, "a request with another key")
			if third == one {
				t.Error("another key gave the same")
			}
			_, err = create(name, "other")
			wantReason(t, err, cove.Conflict, cove.ReasonKeyReused)
			if name != "run" && name != "chat" { // which are about no session
				_, err = elsewhere[name](name, "f")
				wantReason(t, err, cove.Conflict, cove.ReasonKeyReused)
			}
			_, err = p.Sessions().Open(r.ctx, cove.OpenRequest{IdempotencyKey: name})
			wantReason(t, err, cove.Conflict, cove.ReasonKeyReused)
			_, err = create(strings.Repeat("x", 5000), "f")
			wantCode(t, err, cove.Invalid)
		})
	}
	r.written(p, id, "f", len("ran\nran\n"))
	same(t, "what two programs wrote", r.read(p, id, "f"), "ran\nran\n")
}

// everythingOnceAtOnce: of many that come together one makes something.
func everythingOnceAtOnce(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	for name, create := range r.creations(p, id) {
		var answers []<-chan answer[string]
		for range 10 {
			answers = append(answers, async(func() (string, error) { return create(name, "g") }))
		}
		seen := map[string]bool{}
		for _, ch := range answers {
			a := receive(r, ch, "an answer")
			r.must(a.err, name)
			seen[a.value] = true
		}
		if len(seen) != 1 {
			t.Errorf("%s: ten requests with one key made %d", name, len(seen))
		}
	}
	r.written(p, id, "g", len("ran\n"))
	same(t, "what one program wrote", r.read(p, id, "g"), "ran\n")
}

// keyOnce: a repeated request for a key makes no second one, and says which the
// first made.
func keyOnce(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	admin := r.admin().Admin()
	req := cove.KeyRequest{Name: "ci", Scopes: []cove.Scope{cove.ScopeRead}, IdempotencyKey: "k"}
	made, secret, err := admin.CreateKey(r.ctx, req)
	r.must(err, "create a key")
	before := len(all(r, admin.Keys(r.ctx)))
	_, again, err := admin.CreateKey(r.ctx, req)
	wantReason(t, err, cove.Conflict, cove.ReasonKeyReused)
	if e, ok := errors.AsType[*cove.Error](err); !ok || e.Details["key_id"] != string(made.ID) || again != "" || strings.Contains(err.Error(), secret) {
		t.Errorf("the repeat is answered with %+v and %q", err, again)
	}
	req.Name = "other"
	_, _, err = admin.CreateKey(r.ctx, req)
	wantReason(t, err, cove.Conflict, cove.ReasonKeyReused)
	if after := len(all(r, admin.Keys(r.ctx))); after != before {
		t.Errorf("there are %d keys after the repeats, and were %d", after, before)
	}
}

// onceIsForBackground: what is run in the foreground is run as often as it is
// asked for, and so takes no key.
func onceIsForBackground(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	for name, req := range map[string]cove.ExecRequest{
		"plain":  {Line: "echo ran >>f", IdempotencyKey: "k"},
		"output": {Line: "echo ran >>f", IdempotencyKey: "k", OnOutput: func(cove.Chunk) {}},
		"input":  {Line: "echo ran >>f", IdempotencyKey: "k", Stdin: strange{strings.NewReader("x")}},
	} {
		t.Log(name)
		_, err := p.Processes(id).Exec(r.ctx, req)
		wantCode(t, err, cove.Invalid)
	}
	_, err := p.Processes(id).Start(r.ctx, cove.ExecRequest{Line: "echo ran >>f", IdempotencyKey: "k", Stdin: strange{strings.NewReader("x")}})
	wantCode(t, err, cove.Invalid)
	if r.has(cove.PowerTrial) {
		_, err := p.Trials(id).Run(r.ctx, cove.TrialRequest{ExecRequest: cove.ExecRequest{Line: "echo ran >>f", IdempotencyKey: "k"}})
		wantCode(t, err, cove.Invalid)
	}
	_, err = p.Files(id).Stat(r.ctx, "f")
	wantCode(t, err, cove.NotFound)
}

// strange is a reader of which nobody knows whether it has all of its input.
type strange struct{ *strings.Reader }

// onceGone: what a key made and somebody removed is not made again.
func onceGone(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	for name, create := range r.creations(p, id) {
		made, err := create(name, "f")
		r.must(err, name)
		switch name {
		case "snapshot":
			r.must(p.Snapshots().Delete(r.ctx, cove.ID(made)), "delete")
		case "run":
			r.must(p.Runs().Delete(r.ctx, cove.ID(made)), "delete")
		case "context":
			r.must(p.Contexts(id).Close(r.ctx, made), "close")
		default:
			continue
		}
		_, err = create(name, "f")
		wantCode(t, err, cove.NotFound)
	}
	one, err := p.Sessions().Open(r.ctx, keyed("k", "p"))
	r.must(err, "open")
	r.closeNow(p, one.ID)
	_, err = p.Sessions().Open(r.ctx, keyed("k", "p"))
	wantReason(t, err, cove.NotFound, cove.ReasonSessionClosed)
}

// onceAcrossRestarts: a key is good for what it made before.
func onceAcrossRestarts(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	before := map[string]string{}
	for name, create := range r.creations(p, id) {
		made, err := create(name, "f")
		r.must(err, name)
		before[name] = made
	}
	_, _, err := r.admin().Admin().CreateKey(r.ctx, cove.KeyRequest{Scopes: []cove.Scope{cove.ScopeRead}, IdempotencyKey: "a key"})
	r.must(err, "create a key")
	r.eventually("the program has written", func() bool { // it may end with the server
		info, err := p.Files(id).Stat(r.ctx, "f")
		return err == nil && info.Size > 0
	})
	r.restart()
	p = r.user("acme")
	for name, create := range r.creations(p, id) {
		made, err := create(name, "f")
		if name == "context" || name == "start" && !r.has(cove.PowerResume) { // they end with the server
			wantCode(t, err, cove.NotFound)
			continue
		}
		if name == "chat" && cove.CodeOf(err) == cove.NotFound {
			continue // a thread is its key's, and the caller may have another one now
		}
		r.must(err, name)
		if made != before[name] {
			t.Errorf("%s: %q before the restart, %q after it", name, before[name], made)
		}
		_, err = create(name, "other")
		wantReason(t, err, cove.Conflict, cove.ReasonKeyReused)
	}
	_, _, err = r.admin().Admin().CreateKey(r.ctx, cove.KeyRequest{Scopes: []cove.Scope{cove.ScopeRead}, IdempotencyKey: "a key"})
	wantReason(t, err, cove.Conflict, cove.ReasonKeyReused)
	same(t, "what one program wrote", r.read(p, id, "f"), "ran\n")
}
