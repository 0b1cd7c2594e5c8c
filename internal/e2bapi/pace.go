package e2bapi

import (
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// How many calls without a token a sandbox takes.
const (
	openRate  = 10.0 // in a second
	openBurst = 20.0
	maxPaces  = 4096 // sandboxes that are remembered
)

// paces bounds how often each sandbox is called. The zero value is ready.
type paces struct {
	mu  sync.Mutex
	all map[cove.ID]*pace // guarded by mu
}

type pace struct {
	left float64
	at   time.Time
}

// take reports whether a sandbox may be called once more now.
func (p *paces) take(id cove.ID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	one, ok := p.all[id]
	if !ok {
		if p.all == nil || len(p.all) >= maxPaces {
			p.all = p.recent(now)
		}
		one = &pace{left: openBurst, at: now}
		p.all[id] = one
	}
	one.left = min(openBurst, one.left+now.Sub(one.at).Seconds()*openRate)
	one.at = now
	if one.left < 1 {
		return cove.Errorf(cove.Exhausted, "too many calls without an access token").Reason(cove.ReasonRateLimited).
			With("retry_after", 1).Remedy("show the sandbox's access token")
	}
	one.left--
	return nil
}

// recent returns those that are not rested yet, or none where those are too many:
// who calls so many sandboxes does not know their ids.
func (p *paces) recent(now time.Time) map[cove.ID]*pace {
	kept := map[cove.ID]*pace{}
	for id, one := range p.all {
		if now.Sub(one.at).Seconds()*openRate < openBurst {
			kept[id] = one
		}
	}
	if len(kept) >= maxPaces {
		clear(kept)
	}
	return kept
}
