package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

// pair is a cluster of which somebody else keeps the list.
type pair struct {
	cove.Nodes

	list    []cove.Node
	drained []string
}

func (c *pair) List(context.Context) ([]cove.Node, error) { return c.list, nil }

func (c *pair) Drain(_ context.Context, node string) (*cove.Node, error) {
	i := slices.IndexFunc(c.list, func(n cove.Node) bool { return n.ID == node })
	if i < 0 {
		return nil, cove.Errorf(cove.NotFound, "there is no node %.80q", node)
	}
	c.drained = append(c.drained, node)
	c.list[i].State = cove.NodeCordoned
	return &c.list[i], nil
}

func TestNodesOfACluster(t *testing.T) {
	c := &pair{list: []cove.Node{{ID: "a", State: cove.NodeReady}, {ID: "b", State: cove.NodeGone}}}
	w := newWorld(t)
	p := w.open(func(cfg *engine.Config) { cfg.Cluster = c }).As(boss)
	if list, err := p.Nodes().List(t.Context()); err != nil || len(list) != 2 || list[1].State != cove.NodeGone {
		t.Errorf("%+v, %v", list, err)
	}
	if n, err := p.Nodes().Drain(t.Context(), "a"); err != nil || n.State != cove.NodeCordoned || len(c.drained) != 1 {
		t.Errorf("%+v, %v", n, err)
	}
	_, err := p.Nodes().Drain(t.Context(), "nobody\"\n")
	wantCode(t, err, cove.NotFound, "")
	var told []string
	for ev, err := range p.Admin().Events(t.Context(), cove.EventFilter{Kind: string(cove.NodeDrain)}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(ev.Data), "nobody") {
			t.Errorf("the journal has what a caller made up: %s", ev.Data)
		}
		if ev.Phase == cove.AfterIt {
			told = append(told, string(ev.Data)+string(ev.Code))
		}
	}
	if want := []string{`{"node":"a"}`, "not_found"}; !slices.Equal(told, want) {
		t.Errorf("the journal says %v, want %v", told, want)
	}
}

// sulky is a provider that cannot be asked while the engine opens, and does not
// answer afterwards.
type sulky struct {
	*fake.Provider

	opened atomic.Bool
	asked  atomic.Int32
}

func (p *sulky) Probe(ctx context.Context) (cove.Capabilities, error) {
	if !p.opened.Load() {
		return cove.Capabilities{}, errors.New("not yet")
	}
	p.asked.Add(1)
	<-ctx.Done()
	return cove.Capabilities{}, ctx.Err()
}

// TestSelfWaitsForNobody: a node says how it is while one of its providers says
// nothing, asks that one once, and lets it go at the end.
func TestSelfWaitsForNobody(t *testing.T) {
	inner, err := fake.New(fake.Config{Name: "slow", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inner.Close() })
	slow := &sulky{Provider: inner}
	w := newWorld(t)
	e := w.open(func(c *engine.Config) {
		c.Providers = append(c.Providers, slow)
		c.Version, c.MaxMemory = "1.2.3", 8*cove.GiB
	})
	slow.opened.Store(true)
	for range 3 {
		n := e.Self(t.Context())
		if len(n.Providers) != 1 || n.Providers[0].Name != "fake" || !n.Providers[0].Default || n.Version != "1.2.3" || n.Capacity.Memory != 8*cove.GiB {
			t.Fatalf("%+v", n)
		}
	}
	if n := slow.asked.Load(); n != 1 {
		t.Errorf("the slow one was asked %d times", n)
	}
}

// TestMemoryOfASession: the record says what the session counts for, and that it
// moves where it was asked to.
func TestMemoryOfASession(t *testing.T) {
	w := newWorld(t)
	p := w.open().As(boss)
	s := mustOpen(t, p, cove.Spec{
		User: "u", Thread: "t", Resources: cove.Resources{Memory: 64 * cove.MiB},
		Workspace: cove.Workspace{Kind: cove.WorkspaceMemory, Size: 48 * cove.MiB, Moves: true},
	})
	rec, err := w.store.GetSession(t.Context(), s.ID)
	if err != nil || rec.Memory != 64*cove.MiB || !rec.Spec.Workspace.Moves {
		t.Errorf("the record is %+v, %v", rec, err)
	}
	if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil { // it simply stays where there is one node
		t.Fatal(err)
	}
	if again := mustOpen(t, p, cove.Spec{User: "u", Thread: "t", Workspace: cove.Workspace{Moves: true}}); again.ID != s.ID {
		t.Errorf("another session was opened: %s", again.ID)
	}
	mustOpen(t, p, cove.Spec{User: "u", Thread: "stays"})
	_, err = p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{User: "u", Thread: "stays", Workspace: cove.Workspace{Moves: true}}})
	wantCode(t, err, cove.Conflict, cove.ReasonSpecDiffers)
}
