//go:build linux

package guest_test

import (
	"context"
	"iter"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// thin is the least that makes a provider of an agent.
type thin struct {
	cove.Provider

	t  *testing.T
	at place

	mu    sync.Mutex
	boxes map[cove.ID]*thinBox
}

func (p *thin) Name() string { return "thin" }

func (p *thin) Probe(context.Context) (cove.Capabilities, error) {
	return cove.Capabilities{
		Ready: true, Isolation: cove.Isolation{Boundary: cove.BoundaryNamespaces},
		Workspaces: map[cove.WorkspaceKind]cove.Quota{cove.WorkspaceMemory: {}},
		Networks:   []cove.NetworkMode{cove.NetworkOpen}, Templates: []string{"base"},
		Powers: []cove.Power{cove.PowerTerminal, cove.PowerDial},
	}, nil
}

func (p *thin) Create(_ context.Context, id cove.ID, _ cove.Spec) (cove.Sandbox, error) {
	b := &thinBox{id: id, guestAt: connect(p.t, p.at)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.boxes[id] = b
	return b, nil
}

func (p *thin) List(context.Context) iter.Seq2[cove.ID, error] {
	return func(func(cove.ID, error) bool) {}
}

func (p *thin) Remove(ctx context.Context, id cove.ID) error {
	p.mu.Lock()
	b := p.boxes[id]
	p.mu.Unlock()
	return b.Destroy(ctx)
}

func (p *thin) Close() error { return nil }

type thinBox struct {
	*guestAt

	id   cove.ID
	once sync.Once
}

func (b *thinBox) ID() cove.ID               { return b.id }
func (b *thinBox) Isolation() cove.Isolation { return cove.Isolation{} }

func (b *thinBox) Destroy(context.Context) error {
	b.once.Do(func() {
		_ = b.Close()
		_ = b.cmd.Wait()
	})
	return nil
}

var _ cove.Sandbox = (*thinBox)(nil)

// TestConformance runs what providers must keep and agents carry out.
func TestConformance(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user inside")
	}
	framed := func(framed bool) func(t *testing.T) cove.Provider {
		return func(t *testing.T) cove.Provider {
			return &thin{t: t, at: place{framed: framed, namespaces: true, user: true}, boxes: map[cove.ID]*thinBox{}}
		}
	}
	all := []string{
		"exec", "streams", "files", "names", "writes", "list", "watch", "archive", "hostile_archive", "signals", "timeouts",
		"kill", "background", "terminal", "concurrency", "dial", "usage",
	}
	t.Run("framed", func(t *testing.T) { providertest.Run(t, framed(true), all...) })
	// The other transports carry the same messages.
	some := tier.Pick([]string{"exec", "streams", "files", "kill", "terminal", "dial"}, all...)
	t.Run("descriptors", func(t *testing.T) { providertest.Run(t, framed(false), some...) })
	var mu sync.Mutex
	streets := map[string]*street{}
	// open is a provider on what an earlier one of the same test left.
	open := func(t *testing.T) *doored {
		mu.Lock()
		defer mu.Unlock()
		s := streets[t.Name()]
		if s == nil {
			s = &street{t: t, boxes: map[cove.ID]*house{}}
			streets[t.Name()] = s
		}
		return &doored{street: s, open: map[cove.ID]*doorBox{}}
	}
	t.Run("doors", func(t *testing.T) {
		providertest.Run(t, func(t *testing.T) cove.Provider { return open(t) },
			slices.Concat(some, []string{"attach", "resume"})...)
	})
	t.Run("ways out", func(t *testing.T) {
		providertest.Run(t, func(t *testing.T) cove.Provider {
			return &outlets{doored: open(t), world: newWorld(t), gates: map[cove.ID]*reaching{}}
		}, "egress")
	})
}
