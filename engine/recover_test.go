package engine_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// TestManyAreTakenUpTogether attaches slowly: all at once takes the time of a few.
func TestManyAreTakenUpTogether(t *testing.T) {
	const n = 50
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fake.Hook = func(step string, _ cove.ID) error {
			if step == "attach" {
				<-time.After(100 * time.Millisecond)
			}
			return nil
		}
		e, err := w.tryOpen()
		if err != nil {
			t.Fatal(err)
		}
		var ids []cove.ID
		for range n {
			s := mustOpen(t, e.As(boss), cove.Spec{})
			background(t, e.As(boss), s.ID, cove.ExecRequest{Line: "sleep 100000"})
			ids = append(ids, s.ID)
		}
		w.shut(e, w.provider)
		began := time.Now()
		if e, err = w.tryOpen(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("taking up %d sessions of 100 ms each took %s", n, took)
		}
		for _, id := range ids {
			if got := processes(t, e.As(boss), id); len(got) != 1 || !got[0].Running {
				t.Errorf("session %s has %+v", id, got)
			}
		}
		w.shut(e, w.provider)
	})
}

// TestAProviderThatHangsDoesNotHoldUpTheStart: its sessions wait for it.
func TestAProviderThatHangsDoesNotHoldUpTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first := w.open()
		stuck := mustOpen(t, first.As(boss), cove.Spec{})
		fine := mustOpen(t, first.As(boss), cove.Spec{})
		w.shut(first, w.provider)
		hang := &hanging{id: stuck.ID}
		second := w.open(func(c *engine.Config) {
			hang.Provider = c.Providers[0]
			c.Providers = []cove.Provider{hang}
		})
		p := second.As(boss)
		if got := state(t, p, fine.ID); got != cove.Running {
			t.Errorf("the other session is %s", got)
		}
		got, err := p.Sessions().Get(t.Context(), stuck.ID)
		if err != nil || got.State != cove.Failed || got.Cause != cove.ReasonProviderDown {
			t.Errorf("%+v, %v", got, err)
		}
		_, err = p.Processes(stuck.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"})
		wantCode(t, err, cove.Conflict, cove.ReasonProviderDown)
		p = w.restart(second)
		if got := state(t, p, stuck.ID); got != cove.Running {
			t.Errorf("when the provider is back the session is %s", got)
		}
	})
}

// hanging never answers for one sandbox.
type hanging struct {
	cove.Provider

	id cove.ID
}

func (h *hanging) Unwrap() cove.Provider { return h.Provider }

func (h *hanging) Attach(ctx context.Context, id cove.ID) (cove.Sandbox, error) {
	if id == h.id {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Provider.Attach(ctx, id)
}

// TestDiedWhileAway: the provider still finds the sandbox, and it is dead.
func TestDiedWhileAway(t *testing.T) {
	w := newWorld(t)
	first := w.open()
	s := mustOpen(t, first.As(boss), cove.Spec{User: "u"})
	w.shut(first, w.provider)
	p := w.open(func(c *engine.Config) { c.Providers = []cove.Provider{&deadOnes{c.Providers[0]}} }).As(boss)
	_, err := p.Sessions().Get(t.Context(), s.ID)
	wantCode(t, err, cove.NotFound, cove.ReasonNodeLost)
	if n := held(t, w.provider); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
	for got := range p.Sessions().List(t.Context(), cove.SessionFilter{}) {
		t.Errorf("a lost session is listed: %+v", got)
	}
	if kinds := journalOf(t, w, s.ID); !slices.Contains(kinds, "session.lost") {
		t.Errorf("the journal says %v", kinds)
	}
}

type deadOnes struct{ cove.Provider }

func (d *deadOnes) Attach(ctx context.Context, id cove.ID) (cove.Sandbox, error) {
	s, err := d.Provider.Attach(ctx, id)
	if err != nil {
		return nil, err
	}
	died := make(chan struct{})
	close(died)
	return &mortal{Sandbox: s, died: died}, nil
}

// journalOf returns the kinds of the lines about a session.
func journalOf(t *testing.T, w *world, id cove.ID) []string {
	t.Helper()
	var kinds []string
	for e, err := range w.journal.Events(t.Context(), cove.EventFilter{Session: id}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// TestSavingWhileStoppingDoesNotLie renews a session in the middle of a stop: a
// record that says stopped must not be there before the files are safe.
func TestSavingWhileStoppingDoesNotLie(t *testing.T) {
	w := newWorld(t)
	var p cove.Platform
	var id cove.ID
	checked := false
	p = w.open(func(c *engine.Config) {
		c.Archives = beforePut{c.Archives, func() {
			if _, err := p.Sessions().Renew(t.Context(), id, time.Hour); err != nil {
				t.Error(err)
			}
			rec, err := w.store.GetSession(t.Context(), id)
			if err != nil || rec.State != cove.Running {
				t.Errorf("while the files are only in the sandbox the record says %+v (%v)", rec, err)
			}
			_, err = p.Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "true"})
			wantCode(t, err, cove.Conflict, cove.ReasonSessionStopped)
			checked = true
		}}
	}).As(boss)
	id = mustOpen(t, p, cove.Spec{}).ID
	if _, err := p.Sessions().Stop(t.Context(), id); err != nil || !checked {
		t.Fatal(err, checked)
	}
	if _, err := p.Sessions().Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	sh(t, p, id, "true")
}

// beforePut does something before an archive is stored.
type beforePut struct {
	cove.Archives

	do func()
}

func (b beforePut) Put(ctx context.Context, id cove.ID, r io.Reader) (cove.Bytes, error) {
	b.do()
	return b.Archives.Put(ctx, id, r)
}
