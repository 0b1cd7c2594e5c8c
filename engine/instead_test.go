package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

// frail is a provider whose engine can go away, as a daemon does that is killed.
type frail struct {
	cove.Provider

	gone atomic.Bool
	// sly says that it claims to be ready all the same.
	sly atomic.Bool
}

func (p *frail) Probe(ctx context.Context) (cove.Capabilities, error) {
	caps, err := p.Provider.Probe(ctx)
	if p.gone.Load() && !p.sly.Load() {
		caps.Ready, caps.Why, caps.Remedy = false, "its daemon is not available", "start it"
	}
	return caps, err
}

func (p *frail) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if p.gone.Load() {
		return nil, cove.Errorf(cove.Unavailable, "its daemon went away").Remedy("start it")
	}
	return p.Provider.Create(ctx, id, spec)
}

// onFrail puts a frail provider in the place of the world's own.
func onFrail(p *frail) func(*engine.Config) {
	return func(c *engine.Config) {
		p.Provider = c.Providers[0]
		c.Providers = []cove.Provider{p}
	}
}

func fallingBackTo(names ...string) func(*engine.Config) {
	return func(c *engine.Config) { c.Fallback = names }
}

func TestFallbackWhenTheProviderDiesBetween(t *testing.T) {
	for name, tt := range map[string]struct {
		fallback []string
		sly      bool
		spec     cove.Spec
		by       string // "" means refused
		want     string // the refusal
	}{
		"written":                     {fallback: []string{"other"}, by: "other"},
		"not written":                 {want: "its daemon went away"},
		"written, and one was named":  {fallback: []string{"other"}, spec: cove.Spec{Provider: "fake"}, want: "its daemon went away"},
		"written, and it says it can": {fallback: []string{"other"}, sly: true, want: "its daemon went away"},
		"written, and that is asleep": {fallback: []string{"asleep"}, want: "its daemon went away"},
		"the second of two":           {fallback: []string{"asleep", "other"}, by: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			p, w := &frail{}, newWorld(t)
			e := w.open(onFrail(p), second(t, fake.Config{Name: "other"}), second(t, fake.Config{Name: "asleep", Unready: "it is asleep"}), fallingBackTo(tt.fallback...))
			if s := mustOpen(t, e.As(boss), cove.Spec{}); s.Provider != "fake" || s.Instead != "" {
				t.Fatalf("served by %q instead of %q while all is well", s.Provider, s.Instead)
			}
			p.gone.Store(true) // and the engine still remembers that it was ready
			p.sly.Store(tt.sly)
			s, err := e.As(boss).Sessions().Open(t.Context(), cove.OpenRequest{Spec: tt.spec})
			if tt.by == "" {
				wantCode(t, err, cove.Unavailable, cove.ReasonSandboxCreation)
				if !strings.Contains(cove.MessageOf(err), tt.want) || cove.RemedyOf(err) == "" {
					t.Errorf("refused with %q and remedy %q, want %q", cove.MessageOf(err), cove.RemedyOf(err), tt.want)
				}
				if n := count(t, e.As(boss)); n != 1 {
					t.Errorf("%d sessions are left, want the first one", n)
				}
				return
			}
			if err != nil || s.Provider != tt.by || s.Instead != "fake" {
				t.Fatalf("%+v, %v", s, err)
			}
			sh(t, e.As(boss), s.ID, "true")
		})
	}
}

func count(t *testing.T, p cove.Platform) (n int) {
	t.Helper()
	for _, err := range p.Sessions().List(t.Context(), cove.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// What serves in the place of another is told in the answer, which stays as it is
// over a stop, in the journal, in the log and to the observer.
func TestFallbackIsSaid(t *testing.T) {
	w := newWorld(t, func(c *fake.Config) { c.Unready = "it is asleep" })
	var log bytes.Buffer
	seen := &witness{}
	p := w.open(second(t, fake.Config{Name: "other"}), fallingBackTo("other"), watched(seen), func(c *engine.Config) {
		c.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	}).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	for _, change := range []func(context.Context, cove.ID) (*cove.Session, error){p.Sessions().Get, p.Sessions().Stop, p.Sessions().Start} {
		got, err := change(t.Context(), s.ID)
		if err != nil || got.Provider != "other" || got.Instead != "fake" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if h := seen.happening(t, "session.instead"); h.Provider != "other" || h.Instead != "fake" {
		t.Errorf("the observer is told %+v", h)
	}
	var line struct {
		Msg, Session, Provider, Reason string
		Instead                        string `json:"instead_of"`
	}
	if err := json.Unmarshal(bytes.SplitN(log.Bytes(), []byte("\n"), 2)[0], &line); err != nil {
		t.Fatal(err)
	}
	if line.Msg != "served by another provider" || line.Session != string(s.ID) || line.Provider != "other" || line.Instead != "fake" || !strings.Contains(line.Reason, "asleep") {
		t.Errorf("the log says %s", log.Bytes())
	}
	notes := 0
	for ev, err := range p.Admin().Events(t.Context(), cove.EventFilter{Kind: "session.instead"}) {
		notes++
		if err != nil || ev.Provider != "other" || ev.Session != s.ID || !strings.Contains(string(ev.Data), `"instead_of":"fake"`) {
			t.Errorf("the journal says %+v, %v", ev, err)
		}
	}
	if notes != 1 {
		t.Errorf("the journal has %d notes, want one: a session that starts again is not news", notes)
	}
}

// charged is a provider whose sandboxes cost money.
type charged struct{ cove.Provider }

func (p charged) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	s, err := p.Provider.Create(ctx, id, spec)
	return dear{s}, err
}

type dear struct{ cove.Sandbox }

func (s dear) Unwrap() cove.Sandbox { return s.Sandbox }

func (dear) Cost(d time.Duration) *cove.Cost {
	return &cove.Cost{Amount: 2 + d.Hours(), Currency: "USD"}
}

func TestWhatARunCosts(t *testing.T) {
	p := newWorld(t).open(func(c *engine.Config) { c.Providers[0] = charged{c.Providers[0]} }).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"})
	if err != nil || x.Cost == nil || x.Cost.Currency != "USD" || x.Cost.Amount < 2 {
		t.Errorf("a program: %+v, %v", x, err)
	}
	r, err := p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "calc", Code: "1+1"})
	if err != nil || r.Cost == nil || r.Cost.Amount < 2 {
		t.Errorf("code: %+v, %v", r, err)
	}
	free := newWorld(t).open().As(boss)
	s = mustOpen(t, free, cove.Spec{})
	if x, err := free.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"}); err != nil || x.Cost != nil {
		t.Errorf("what costs nothing: %+v, %v", x, err)
	}
}

// mute is a provider that nobody can ask for its sandboxes.
type mute struct{ cove.Provider }

func (mute) List(context.Context) iter.Seq2[cove.ID, error] {
	return func(yield func(cove.ID, error) bool) {
		yield("", cove.Errorf(cove.Unavailable, "its daemon is not available"))
	}
}

// A provider that nobody chose and that is not ready is not looked through for
// orphans; one that was chosen is, and that it cannot be is said.
func TestOrphansOfProvidersThatAreNotThere(t *testing.T) {
	other, err := fake.New(fake.Config{Dir: t.TempDir(), Name: "other", Unready: "it is asleep"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	for want, fallback := range map[cove.Code][]string{"": nil, cove.Unavailable: {"other"}} {
		e := newWorld(t).open(fallingBackTo(fallback...), func(c *engine.Config) { c.Providers = append(c.Providers, mute{other}) })
		if _, err := e.As(boss).Admin().ControlTask(t.Context(), "orphans", cove.RunTask); cove.CodeOf(err) != want {
			t.Errorf("with the order %v it ends with %v, want %q", fallback, err, want)
		}
	}
}
