package engine

import (
	"context"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// refresher asks providers in the background, each once at a time.
type refresher struct {
	all sync.WaitGroup

	mu     sync.Mutex
	busy   map[string]context.CancelFunc // guarded by mu
	closed bool                          // guarded by mu
}

// firstWait is how long somebody waits for what a provider never said before.
const firstWait = 500 * time.Millisecond

func (r *refresher) init() { r.busy = map[string]context.CancelFunc{} }

// close ends what is being asked. It does not wait for ever for a provider that
// does not listen.
func (r *refresher) close() {
	r.mu.Lock()
	r.closed = true
	asked := len(r.busy)
	for _, stop := range r.busy {
		stop()
	}
	r.mu.Unlock()
	if asked == 0 {
		return
	}
	over := make(chan struct{})
	go func() {
		r.all.Wait()
		close(over)
	}()
	late := time.NewTimer(probeGrace)
	defer late.Stop()
	select {
	case <-over:
	case <-late.C:
	}
}

// ready is a provider that said that it is.
type ready struct {
	name string
	caps cove.Capabilities
}

// latest returns the providers that are ready, as they said last. Those whose
// answer is old are asked anew in the background, and only one that was never asked
// is waited for, shortly.
func (p *probes) latest(ctx context.Context) []ready {
	var first []<-chan struct{}
	for _, provider := range p.list {
		p.mu.Lock()
		was, known := p.seen[provider.Name()]
		p.mu.Unlock()
		if known && time.Since(was.at) < probeAge {
			continue
		}
		if over := p.refresh(ctx, provider); over != nil && !known {
			first = append(first, over)
		}
	}
	p.await(ctx, first)
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []ready
	for _, provider := range p.list {
		if last, ok := p.seen[provider.Name()]; ok && !last.failed && last.caps.Ready {
			list = append(list, ready{provider.Name(), last.caps})
		}
	}
	return list
}

// await waits for answers until they are there or it took too long.
func (p *probes) await(ctx context.Context, first []<-chan struct{}) {
	if len(first) == 0 {
		return
	}
	late := time.NewTimer(firstWait)
	defer late.Stop()
	for _, over := range first {
		select {
		case <-over:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// refresh asks a provider in the background and returns what is closed when it
// answered, or nil where somebody is at it.
func (p *probes) refresh(ctx context.Context, provider cove.Provider) <-chan struct{} {
	r := &p.again
	name := provider.Name()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy[name] != nil || r.closed {
		return nil
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.busy[name] = stop
	over := make(chan struct{})
	r.all.Go(func() {
		defer close(over)
		defer stop()
		_, err := p.of(ctx, provider)
		if err != nil && ctx.Err() == nil {
			p.fail(name)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.busy, name)
	})
	return over
}

// fail remembers that a provider could not be asked, until it says something again.
func (p *probes) fail(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.seen[name]
	was.failed = true
	p.seen[name] = was
}
