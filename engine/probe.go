package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// probes remembers for a while what the providers said they can do.
type probes struct {
	list  []cove.Provider
	again refresher

	mu   sync.Mutex
	seen map[string]probed // guarded by mu
}

type probed struct {
	caps   cove.Capabilities
	at     time.Time
	failed bool // since then it could not be asked
}

// probeAge is how long an answer holds, and probeTime how long one may take.
const (
	probeAge  = 10 * time.Second
	probeTime = 10 * time.Second
)

func (p *probes) init(list []cove.Provider) {
	p.list = list
	p.seen = map[string]probed{}
	p.again.init()
}

func (p *probes) provider(name string) (cove.Provider, bool) {
	i := slices.IndexFunc(p.list, func(o cove.Provider) bool { return o.Name() == name })
	if i < 0 {
		return nil, false
	}
	return p.list[i], true
}

// forget has all providers be asked again.
func (p *probes) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.seen)
}

// of returns what a provider can do now.
func (p *probes) of(ctx context.Context, provider cove.Provider) (cove.Capabilities, error) {
	p.mu.Lock()
	was, ok := p.seen[provider.Name()]
	p.mu.Unlock()
	if ok && time.Since(was.at) < probeAge {
		return was.caps, nil
	}
	short, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	caps, err := provider.Probe(short)
	if err != nil && ctx.Err() != nil {
		return caps, ctx.Err() // the caller's doing, not the provider's
	}
	if err != nil {
		return caps, cove.Wrap(cove.Unavailable, err, "provider %s cannot be probed", provider.Name()).Remedy("see cove doctor")
	}
	p.mu.Lock()
	p.seen[provider.Name()] = probed{caps: caps, at: time.Now()}
	p.mu.Unlock()
	return caps, nil
}

// shell is what runs lines in a provider's sandboxes.
func (p *probes) shell(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.seen[name].caps.Shell; s != "" {
		return s
	}
	return "bash"
}

// doubt forgets an answer, after the provider broke its word.
func (p *probes) doubt(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seen, name)
}

// choice is the provider that serves a session, and how it came to that.
type choice struct {
	cove.Provider

	named   bool   // by the request
	instead string // the one that was to serve, "" where it does
	why     error  // it does not
}

// choose returns the provider that serves a resolved spec. Another than the
// one asked for serves only where the operator wrote an order, the request
// named none, and the first is not ready.
func (e *Engine) choose(ctx context.Context, s cove.Spec) (choice, error) {
	names := []string{s.Provider}
	if s.Provider == "" {
		names = append([]string{e.cfg.Provider}, e.cfg.Fallback...)
	}
	var first error
	for _, name := range names {
		p, ok := e.probes.provider(name)
		if !ok {
			return choice{}, cove.InvalidField("provider", "%.40q is unknown", name)
		}
		err := e.serves(ctx, p, s)
		switch {
		case err == nil && first == nil:
			return choice{Provider: p, named: s.Provider != ""}, nil
		case err == nil:
			return choice{Provider: p, instead: names[0], why: first}, nil
		case first == nil:
			first = err
		}
		if cove.CodeOf(err) != cove.Unavailable {
			return choice{}, err
		}
	}
	return choice{}, first
}

// serves reports why a provider cannot serve a resolved spec now.
func (e *Engine) serves(ctx context.Context, p cove.Provider, s cove.Spec) error {
	caps, err := e.probes.of(ctx, p)
	if err == nil && !slices.Contains(caps.Templates, s.Template) {
		// It may have been built a moment ago.
		e.probes.doubt(p.Name())
		caps, err = e.probes.of(ctx, p)
	}
	if err != nil {
		return err
	}
	return caps.Check(p.Name(), s)
}

// another returns who serves a spec after a provider could not, though it had said
// that it was ready. It is asked anew: only if it takes its word back, the operator
// wrote an order and the request named nobody, there is somebody else.
func (e *Engine) another(ctx context.Context, s cove.Spec, broke choice, err error) (choice, bool) {
	if cove.CodeOf(err) != cove.Unavailable || s.Provider != "" || len(e.cfg.Fallback) == 0 || ctx.Err() != nil {
		return choice{}, false
	}
	e.probes.doubt(broke.Name())
	next, nerr := e.choose(ctx, s)
	return next, nerr == nil && next.Name() != broke.Name()
}

// Isolation returns what stands around a sandbox of a caller who asks for nothing.
func (e *Engine) Isolation(ctx context.Context, by cove.Principal) (cove.Isolation, error) {
	names := append([]string{e.cfg.Provider}, e.cfg.Fallback...)
	if by.Defaults.Provider != "" {
		names = []string{by.Defaults.Provider}
	}
	var first error
	for _, name := range names {
		p, ok := e.probes.provider(name)
		if !ok {
			return cove.Isolation{}, cove.InvalidField("provider", "%.40q is unknown", name)
		}
		caps, err := e.probes.of(ctx, p)
		if err == nil && caps.Ready {
			return caps.For(cmp.Or(by.Defaults.Workspace.Kind, e.cfg.Defaults.Workspace.Kind)), nil
		}
		if err == nil {
			err = cove.Errorf(cove.Unavailable, "provider %s is not ready: %s", name, caps.Why).Remedy("%s", caps.Remedy)
		}
		first = cmp.Or(first, err)
	}
	return cove.Isolation{}, first
}
