//go:build linux

package e2b

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
)

// Provider makes sandboxes at E2B. It implements [cove.Provider].
type Provider struct {
	cfg    Config
	caller *caller
	api    *api
	ledger *ledger
	image  func() (image, error) // the agent

	renewer sync.WaitGroup
	life    context.Context //nolint:containedctx // ends with Close, for what nobody waits for
	stop    context.CancelFunc

	mu      sync.Mutex
	boxes   map[cove.ID]*sandbox // guarded by mu; those that are being made have no machine yet
	renews  bool                 // guarded by mu
	closed  bool                 // guarded by mu
	closing sync.Once
}

var _ cove.Provider = (*Provider)(nil)

// New returns a provider for what cfg names. It asks E2B for nothing, and touches
// nothing here.
func New(cfg Config) (*Provider, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := newCaller()
	p := &Provider{
		cfg: cfg, caller: c, api: newAPI(cfg, c), ledger: newLedger(cfg.Dir),
		boxes: map[cove.ID]*sandbox{},
	}
	p.life, p.stop = context.WithCancel(context.Background())
	p.image = sync.OnceValues(func() (image, error) { return loadImage(cfg.Agent) })
	return p, nil
}

// Name implements [cove.Provider].
func (p *Provider) Name() string { return name }

// Close implements [cove.Provider]. Machines live on for a while, for who takes
// them up.
func (p *Provider) Close() error {
	var err error
	p.closing.Do(func() {
		p.mu.Lock()
		p.closed = true
		boxes := p.boxes
		p.boxes = nil
		p.mu.Unlock()
		p.stop()
		for _, s := range boxes {
			s.leave()
		}
		p.renewer.Wait()
		p.caller.close()
		err = p.ledger.close()
	})
	return err
}

func errClosed() error { return cove.Errorf(cove.Unavailable, "provider e2b is closed") }

// reserve takes an id for a sandbox that is to be made or taken up.
func (p *Provider) reserve(s *sandbox) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errClosed()
	}
	if _, taken := p.boxes[s.id]; taken {
		return cove.Errorf(cove.Conflict, "sandbox %s exists already", s.id)
	}
	if p.cfg.Most > 0 && len(p.boxes) >= p.cfg.Most && !s.known {
		return cove.Errorf(cove.Exhausted, "there are %d sandboxes at E2B, as many as E2B_MAX_SANDBOXES allows", len(p.boxes)).
			Reason(cove.ReasonCapacity).With("retry_after", 5).Remedy("close one, or raise E2B_MAX_SANDBOXES")
	}
	p.boxes[s.id] = s
	if !p.renews {
		p.renews = true
		p.renewer.Go(p.renew)
	}
	return nil
}

// release forgets a sandbox.
func (p *Provider) release(s *sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.boxes[s.id] == s {
		delete(p.boxes, s.id)
	}
}

// List implements [cove.Provider].
func (p *Provider) List(ctx context.Context) iter.Seq2[cove.ID, error] {
	return func(yield func(cove.ID, error) bool) {
		ids, err := p.all(ctx)
		if err != nil {
			yield("", err)
			return
		}
		for id := range ids {
			if !yield(id, nil) {
				return
			}
		}
	}
}

// all returns the ids that we have a record of, and those that E2B has.
func (p *Provider) all(ctx context.Context) (map[cove.ID]bool, error) {
	kept, err := p.ledger.ids()
	if err != nil {
		return nil, err
	}
	owner, err := p.ledger.owner()
	if err != nil {
		return nil, err
	}
	machines, err := p.api.list(ctx, map[string]string{metaOwner: owner}, 0)
	if err != nil {
		return nil, err
	}
	ids := map[cove.ID]bool{}
	for _, id := range kept {
		ids[id] = true
	}
	for _, m := range machines {
		if id := cove.ID(m.Metadata[metaID]); id.Valid() {
			ids[id] = true
		}
	}
	return ids, nil
}

// Remove implements [cove.Provider].
func (p *Provider) Remove(ctx context.Context, id cove.ID) error {
	if !id.Valid() {
		return nil
	}
	p.mu.Lock()
	s, closed := p.boxes[id], p.closed
	p.mu.Unlock()
	if closed {
		return errClosed()
	}
	if s != nil {
		return s.Destroy(ctx)
	}
	return p.sweep(ctx, id)
}

// sweep ends all that E2B and the ledger have under an id.
func (p *Provider) sweep(ctx context.Context, id cove.ID) error {
	owner, err := p.ledger.owner()
	if err != nil {
		return err
	}
	machines, err := p.api.list(ctx, map[string]string{metaOwner: owner, metaID: string(id)}, 0)
	if err != nil {
		return err
	}
	if r, ok := p.ledger.get(id); ok {
		machines = append(machines, machineAnswer{Machine: r.Machine})
	}
	for _, m := range machines {
		if err := p.api.kill(ctx, m.Machine); err != nil {
			return err
		}
	}
	return p.ledger.drop(id)
}

// Renewing: so often in the life of a machine that two failures do not end it, and
// so many at once that slow answers do not keep others waiting.
const (
	renewals   = 4
	renewsOnce = 16
)

// renew gives the machines of live sandboxes their time anew, long before it ends.
func (p *Provider) renew() {
	tick := time.NewTicker(p.cfg.Timeout / renewals)
	defer tick.Stop()
	for {
		select {
		case <-p.life.Done():
			return
		case <-tick.C:
		}
		p.mu.Lock()
		var live []*sandbox
		for _, s := range p.boxes {
			live = append(live, s)
		}
		p.mu.Unlock()
		var all sync.WaitGroup
		slots := make(chan struct{}, renewsOnce)
		for _, s := range live {
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				s.renew()
			})
		}
		all.Wait()
	}
}

// connectTo is the machine that an answer tells of.
func (p *Provider) connectTo(m machineAnswer) *machine {
	return &machine{caller: p.caller, id: m.Machine, base: p.cfg.envdAt(m.Machine, m.Domain), token: m.Token}
}

func (p *Provider) options(env map[string]string) guest.Options {
	return guest.Options{Env: environment(env)}
}
