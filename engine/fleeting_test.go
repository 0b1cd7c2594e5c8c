package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// slowJournal tells when something is done before its intent is on the disk.
type slowJournal struct {
	cove.Journal

	began  []string // the kinds of the lines that Begin wrote
	waited []string // and of those that Append brought to the disk
	wait   func() error
}

func (j *slowJournal) Append(ctx context.Context, e *cove.Event, durable bool) error {
	if durable {
		j.waited = append(j.waited, e.Kind)
	}
	return j.Journal.Append(ctx, e, durable)
}

func (j *slowJournal) Begin(e *cove.Event) (func(context.Context) error, error) {
	if err := j.Append(context.Background(), e, false); err != nil {
		return nil, err
	}
	j.began = append(j.began, e.Kind)
	return func(context.Context) error { return j.wait() }, nil
}

// fleeting is an engine for sessions that end with it.
func fleeting(t *testing.T, wait func() error) (*world, *slowJournal, cove.Platform) {
	t.Helper()
	w := newWorld(t)
	j := &slowJournal{Journal: w.journal, wait: wait}
	return w, j, w.open(func(c *engine.Config) { c.Journal, c.Fleeting = j, true }).As(boss)
}

func TestFleetingSessionsAreMadeWhileTheDiskWorks(t *testing.T) {
	var w *world
	var had []int // sandboxes at each wait
	w, j, p := fleeting(t, func() error {
		had = append(had, held(t, w.provider))
		return nil
	})
	s := mustOpen(t, p, cove.Spec{})
	if got := sh(t, p, s.ID, "echo hi"); got != "hi\n" {
		t.Errorf("got %q", got)
	}
	if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"session.open"}, j.began); diff != "" {
		t.Errorf("lines that are waited for later (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{1}, had); diff != "" {
		t.Errorf("sandboxes at the time of the wait (-want +got):\n%s", diff)
	}
	if len(j.waited) > 0 {
		t.Errorf("%v waited for the disk", j.waited)
	}
	for s := range w.store.Sessions(t.Context(), cove.SessionFilter{}) {
		t.Errorf("a record is kept: %+v", s)
	}
}

// TestFleetingSessionsAnswerAfterTheDisk: what is not on the disk is not said
// to have gone well.
func TestFleetingSessionsAnswerAfterTheDisk(t *testing.T) {
	_, _, p := fleeting(t, func() error { return cove.Errorf(cove.Unavailable, "input/output error") })
	_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
	wantCode(t, err, cove.Unavailable, "")
	if text := cove.MessageOf(err); !strings.Contains(text, "it was done, but the journal could not be written") {
		t.Errorf("got %q", text)
	}
}

// TestOtherSessionsWaitForTheDiskFirst: a journal that could do otherwise is
// not asked to.
func TestOtherSessionsWaitForTheDiskFirst(t *testing.T) {
	w := newWorld(t)
	j := &slowJournal{Journal: w.journal}
	p := w.open(func(c *engine.Config) { c.Journal = j }).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
		t.Fatal(err)
	}
	if len(j.began) > 0 {
		t.Errorf("%v went on before they were on the disk", j.began)
	}
	if diff := cmp.Diff([]string{"session.open", "session.close"}, j.waited); diff != "" {
		t.Errorf("what waited for the disk (-want +got):\n%s", diff)
	}
}

func TestASpareFromElsewhereComesBeforeThePool(t *testing.T) {
	w := newWorld(t)
	want := cove.Mold{Provider: "fake", Template: "python", Workspace: cove.WorkspaceMemory}
	var asked []cove.Mold
	p := w.open(func(c *engine.Config) {
		c.Spare = func(ctx context.Context, m cove.Mold) (cove.Spare, bool) {
			asked = append(asked, m)
			if m != want {
				return nil, false
			}
			preparer, ok := cove.As[cove.Preparer](cove.Provider(w.provider))
			if !ok {
				t.Fatal("the provider cannot prepare")
			}
			spare, err := preparer.Prepare(ctx, m)
			if err != nil {
				t.Fatal(err)
			}
			return spare, true
		}
	}).As(boss)
	for _, template := range []string{"base", "python"} {
		s := mustOpen(t, p, cove.Spec{Template: template})
		if got := sh(t, p, s.ID, "echo hi"); got != "hi\n" {
			t.Errorf("%s: %q", template, got)
		}
	}
	other := want
	other.Template = "base"
	if diff := cmp.Diff([]cove.Mold{other, want}, asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
}

func TestMoldOf(t *testing.T) {
	cfg := engine.Config{Provider: "fake", Defaults: cove.Spec{Template: "node"}}
	for _, tc := range []struct {
		spec cove.Spec
		want cove.Mold
		ok   bool
	}{
		{cove.Spec{}, cove.Mold{Provider: "fake", Template: "node", Workspace: cove.WorkspaceMemory}, true},
		{
			cove.Spec{Provider: "p", Template: "t", Workspace: cove.Workspace{Kind: cove.WorkspaceDisk}},
			cove.Mold{Provider: "p", Template: "t", Workspace: cove.WorkspaceDisk},
			true,
		},
		{cove.Spec{Snapshot: cove.NewID()}, cove.Mold{Provider: "fake", Template: "node", Workspace: cove.WorkspaceMemory}, false},
	} {
		got, ok := cfg.MoldOf(tc.spec)
		if got != tc.want || ok != tc.ok {
			t.Errorf("%+v: %+v, %v", tc.spec, got, ok)
		}
	}
}
