package engine_test

import (
	"context"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// witness remembers all that it is told.
type witness struct {
	mu     sync.Mutex
	began  []cove.Observed
	ended  []cove.Ending
	heard  []cove.Happening
	inside int // happenings whose context is that of an action
}

type inAction struct{}

func (w *witness) Begin(ctx context.Context, what cove.Observed) (context.Context, func(cove.Ending)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = append(w.began, what)
	return context.WithValue(ctx, inAction{}, true), func(e cove.Ending) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended = append(w.ended, e)
	}
}

func (w *witness) Note(ctx context.Context, h cove.Happening) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, h)
	if ctx.Value(inAction{}) != nil {
		w.inside++
	}
}

// last returns how the newest action of a verb went.
func (w *witness) last(t *testing.T, verb cove.Verb) cove.Ending {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range slices.Backward(w.ended) {
		if e.Verb == verb {
			return e
		}
	}
	t.Fatalf("nothing was told of %s", verb)
	return cove.Ending{}
}

// kinds returns the words of the happenings, in order.
func (w *witness) kinds() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for _, h := range w.heard {
		list = append(list, h.Kind)
	}
	return list
}

func (w *witness) happening(t *testing.T, kind string) cove.Happening {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.heard, func(h cove.Happening) bool { return h.Kind == kind })
	if i < 0 {
		t.Fatalf("nothing was told of %s", kind)
	}
	return w.heard[i]
}

func watched(w *witness) func(*engine.Config) {
	return func(c *engine.Config) { c.Observer = w }
}

// TestEveryMethodIsObserved walks the platform as the guard test does: no verb
// may be missing from what an observer sees.
func TestEveryMethodIsObserved(t *testing.T) {
	w := &witness{}
	e := openEngine(t, watched(w), func(c *engine.Config) { c.Policy, c.Journal = denyAll{}, &countingJournal{} })
	for part := range reflect.TypeFor[cove.Platform]().Methods() {
		for method := range part.Type.Out(0).Methods() {
			accessor := reflect.ValueOf(e.As(cove.Principal{Name: "eve"})).MethodByName(part.Name)
			f := accessor.Call(zeros(t, accessor.Type()))[0].MethodByName(method.Name)
			_ = lastError(t, f.Call(zeros(t, f.Type())))
		}
	}
	seen := map[cove.Verb]int{}
	for i, end := range w.ended {
		seen[end.Verb]++
		if end.Code != cove.Denied || end.Effect != cove.Deny || end.Principal != "eve" || end.Tenant != cove.DefaultTenant {
			t.Errorf("%s ended as %+v, want it denied", end.Verb, end)
		}
		if w.began[i].Verb != end.Verb {
			t.Errorf("%s began and %s ended", w.began[i].Verb, end.Verb)
		}
	}
	for _, verb := range cove.Verbs() {
		if seen[verb] != 1 {
			t.Errorf("%s was seen %d times, want 1: the method does not go through act", verb, seen[verb])
		}
	}
}

func TestWhatAnObserverIsTold(t *testing.T) {
	w := &witness{}
	p := openEngine(t, watched(w), func(c *engine.Config) { c.MaxFileSize = 64 }).As(boss)
	s := mustOpen(t, p, cove.Spec{User: "ann", Thread: "t1", Policy: "agent-bash"})
	want := cove.Observed{
		Verb: cove.SessionOpen, Principal: "boss", Tenant: cove.DefaultTenant, Session: s.ID, Provider: "fake", User: "ann", Thread: "t1",
	}
	open := w.last(t, cove.SessionOpen)
	if diff := cmp.Diff(want, open.Observed); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
	for _, pair := range [][2]time.Time{{open.Began, open.Decided}, {open.Decided, open.Intended}, {open.Intended, open.Done}, {open.Done, open.Ended}} {
		if pair[0].IsZero() || pair[1].Before(pair[0]) {
			t.Errorf("the times of the road are out of order: %+v", open)
		}
	}
	mustOpen(t, p, cove.Spec{User: "ann", Thread: "t1"})
	run := func(req cove.ExecRequest) cove.Ending {
		_, _ = p.Processes(s.ID).Exec(t.Context(), req)
		return w.last(t, cove.ProcessExec)
	}
	ctx := t.Context()
	for _, c := range []struct {
		name string
		do   func() cove.Ending
		want cove.Ending
	}{
		{"a program that fails", func() cove.Ending { return run(cove.ExecRequest{Line: "exit 3"}) }, cove.Ending{Effect: cove.Allow, Outcome: cove.Exited, ExitCode: 3}},
		{"what policy blocks", func() cove.Ending { return run(cove.ExecRequest{Line: "curl x"}) }, cove.Ending{Effect: cove.Deny, Code: cove.Denied, Outcome: cove.Blocked}},
		{"a request that is none", func() cove.Ending { return run(cove.ExecRequest{Line: "echo", Limits: cove.Limits{Wall: -1}}) }, cove.Ending{Effect: cove.Allow, Code: cove.Invalid}},
		{"a file", func() cove.Ending {
			_ = p.Files(s.ID).Write(ctx, "f", strings.NewReader("12345"), 0o644)
			return w.last(t, cove.FileWrite)
		}, cove.Ending{Effect: cove.Allow, Bytes: 5}},
		{"a file too large", func() cove.Ending {
			_ = p.Files(s.ID).Write(ctx, "g", strings.NewReader(strings.Repeat("x", 65)), 0o644)
			return w.last(t, cove.FileWrite)
		}, cove.Ending{Effect: cove.Allow, Code: cove.Invalid, Reason: cove.ReasonFileTooLarge, Bytes: 65}},
	} {
		got := c.do()
		if got.Wall() < 0 || got.Session != s.ID || got.User != "ann" {
			t.Errorf("%s: %+v", c.name, got)
		}
		got.Observed, got.Began, got.Decided, got.Intended, got.Done, got.Ended = cove.Observed{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if got := w.kinds(); !slices.Equal(got, []string{cove.SessionCreated, cove.SessionReused}) || w.inside != 2 {
		t.Errorf("the happenings are %q, %d of them inside an action", got, w.inside)
	}
}

func TestHappenings(t *testing.T) {
	w := &witness{}
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{User: "u", Thread: "t", Idle: time.Hour})
		bg := background(t, p, s.ID, cove.ExecRequest{Line: "sleep 2; exit 4"})
		if _, err := p.Processes(s.ID).Wait(t.Context(), bg.PID); err != nil {
			t.Fatal(err)
		}
		if h := w.happening(t, cove.ProgramEnded); h.ExitCode != 4 || h.Outcome != cove.Exited || h.Wall < 2*time.Second || h.Session != s.ID {
			t.Errorf("the end of a background program: %+v", h)
		}
		if err := p.Files(s.ID).Write(t.Context(), "f", strings.NewReader("123456"), 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := p.Files(s.ID).Read(t.Context(), "f", 2, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Fatal(err)
		}
		_, _ = r.Close(), r.Close()
		if h := w.happening(t, cove.FileDownloaded); h.Bytes != 4 || h.User != "u" || h.Thread != "t" {
			t.Errorf("a download: %+v", h)
		}
		other := mustOpen(t, p, cove.Spec{OnEnd: cove.EndClose}) // there is room for one: the first is stopped
		if h := w.happening(t, "session.evicted"); h.Session != s.ID || h.Provider != "fake" {
			t.Errorf("an eviction: %+v", h)
		}
		if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
			t.Fatal(err)
		}
		after(time.Hour + 2*time.Minute)
		var ends []string
		for _, h := range w.heard {
			if h.Kind == cove.SessionEnded {
				ends = append(ends, h.Cause)
				if h.Session == other.ID && h.Wall < 30*time.Minute {
					t.Errorf("a session that expired lived for %s", h.Wall)
				}
			}
		}
		if want := []string{cove.ReasonSessionClosed, cove.ReasonSessionExpired}; !slices.Equal(ends, want) {
			t.Errorf("sessions ended for %q, want %q", ends, want)
		}
	}, watched(w), oneRoom)
	if n := strings.Count(strings.Join(w.kinds(), " "), cove.FileDownloaded); n != 1 {
		t.Errorf("a download that was closed twice was told %d times", n)
	}
}

func TestPoolIsTold(t *testing.T) {
	w := &witness{}
	e := openEngine(t, watched(w), func(c *engine.Config) { c.PoolSize = 1 })
	p := e.As(boss)
	mustOpen(t, p, cove.Spec{})
	if _, err := p.Admin().ControlTask(t.Context(), "pool", cove.RunTask); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, p, cove.Spec{})
	want := []string{cove.PoolMiss, cove.SessionCreated, cove.PoolHit, cove.SessionCreated}
	if got := w.kinds(); !slices.Equal(got, want) {
		t.Errorf("the happenings are %q, want %q", got, want)
	}
}

// TestAnObserverGetsNoContent looks for what callers sent in all that an
// observer is told.
func TestAnObserverGetsNoContent(t *testing.T) {
	w := &witness{}
	p := openEngine(t, watched(w)).As(boss)
	s := mustOpen(t, p, cove.Spec{Env: map[string]string{"A": "hush-env"}, Metadata: map[string]string{"m": "hush-meta"}})
	sh(t, p, s.ID, "echo hush-line")
	_ = p.Files(s.ID).Write(t.Context(), "hush-path", strings.NewReader("hush-content"), 0o644)
	_, _ = p.Files(s.ID).Stat(t.Context(), "hush-missing")
	_, _ = p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "hush-language", Code: "hush-code"})
	_, _ = p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "x", Dir: "../hush-dir"})
	_, _ = p.Sessions().Get(t.Context(), "hush-id")
	_, _ = p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{User: strings.Repeat("u", 5000), Flavor: "hush-flavor"}})
	text, err := json.Marshal([]any{w.began, w.ended, w.heard})
	if err != nil {
		t.Fatal(err)
	}
	if i := strings.Index(string(text), "hush"); i >= 0 {
		t.Errorf("an observer was told %q", text[max(0, i-80):i+20])
	}
	if strings.Contains(string(text), strings.Repeat("u", 65)) {
		t.Error("a long name of a user was not cut")
	}
}
