// Package pool keeps sandboxes ready before anybody asks for them.
//
// What is slow and the same for everyone is done when the pool is filled; what
// is personal is done when a spare is claimed. A used sandbox never comes back.
// The pool starts no goroutine: somebody calls Fill. It must not know sessions
// or callers.
package pool

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cove-sandbox/cove"
)

// Config says how much to keep ready.
type Config struct {
	Size int // spares of each mold; 0 turns the pool off
	Max  int // spares in all
	// Prepare makes one spare. It fails with Unsupported for a mold that cannot
	// be prepared, which the pool then forgets.
	Prepare func(ctx context.Context, m cove.Mold) (cove.Spare, error)
}

// maxMolds bounds what callers can make the pool learn.
const maxMolds = 16

// Pool holds spares. Methods are safe for concurrent use.
type Pool struct {
	cfg Config

	mu     sync.Mutex
	spares map[cove.Mold][]cove.Spare // guarded by mu
	molds  []cove.Mold                // guarded by mu; most recently wanted last
	closed bool                       // guarded by mu
}

// New returns an empty Pool.
func New(cfg Config) *Pool {
	return &Pool{cfg: cfg, spares: map[cove.Mold][]cove.Spare{}}
}

// Want makes Fill keep spares of m ready. The mold that was wanted longest ago
// makes room for it.
func (p *Pool) Want(m cove.Mold) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.want(m)
}

func (p *Pool) want(m cove.Mold) {
	if n := len(p.molds); n > 0 && p.molds[n-1] == m {
		return
	}
	p.molds = append(slices.DeleteFunc(p.molds, func(o cove.Mold) bool { return o == m }), m)
	if len(p.molds) > maxMolds {
		p.molds = p.molds[1:]
	}
}

// Take returns a spare of m, if there is one, and remembers that m is wanted.
// The spare is the caller's: to claim it or to discard it.
func (p *Pool) Take(m cove.Mold) (cove.Spare, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cfg.Size == 0 || p.closed {
		return nil, false
	}
	p.want(m)
	list := p.spares[m]
	if len(list) == 0 {
		return nil, false
	}
	s := list[len(list)-1]
	list[len(list)-1] = nil
	p.spares[m] = list[:len(list)-1]
	return s, true
}

// Fill makes what is missing, one spare after the other, and discards what is
// no longer wanted. It returns how many it made.
func (p *Pool) Fill(ctx context.Context) (int64, error) {
	var made int64
	err := p.trim(ctx)
	for ctx.Err() == nil {
		m, ok := p.missing()
		if !ok {
			break
		}
		s, perr := p.cfg.Prepare(ctx, m)
		if perr != nil {
			p.forget(m)
			if cove.CodeOf(perr) != cove.Unsupported {
				err = errors.Join(err, perr)
			}
			continue
		}
		if !p.add(m, s) {
			err = errors.Join(err, s.Discard(context.WithoutCancel(ctx)))
			break
		}
		made++
	}
	return made, err
}

func (p *Pool) missing() (cove.Mold, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.count() >= p.cfg.Max {
		return cove.Mold{}, false
	}
	for _, m := range slices.Backward(p.molds) {
		if len(p.spares[m]) < p.cfg.Size {
			return m, true
		}
	}
	return cove.Mold{}, false
}

func (p *Pool) add(m cove.Mold, s cove.Spare) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.spares[m] = append(p.spares[m], s)
	return true
}

// forget drops a mold that cannot be prepared; the next Take learns it anew.
func (p *Pool) forget(m cove.Mold) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.molds = slices.DeleteFunc(p.molds, func(o cove.Mold) bool { return o == m })
}

// trim discards the spares of molds that fell off the list.
func (p *Pool) trim(ctx context.Context) error {
	p.mu.Lock()
	var old []cove.Spare
	for m, list := range p.spares {
		if !slices.Contains(p.molds, m) {
			old = append(old, list...)
			delete(p.spares, m)
		}
	}
	p.mu.Unlock()
	return discard(ctx, old)
}

// Close discards every spare. Take finds none from now on. It is idempotent.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	var all []cove.Spare
	for _, list := range p.spares {
		all = append(all, list...)
	}
	p.closed = true
	clear(p.spares)
	p.mu.Unlock()
	return discard(ctx, all)
}

func discard(ctx context.Context, spares []cove.Spare) error {
	var err error
	for _, s := range spares {
		err = errors.Join(err, s.Discard(ctx))
	}
	return err
}

// Size returns how many spares are wanted and how many there are.
func (p *Pool) Size() (want, have int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(len(p.molds)*p.cfg.Size, p.cfg.Max), p.count()
}

// count is how many spares there are. The caller holds mu.
func (p *Pool) count() int {
	n := 0
	for _, list := range p.spares {
		n += len(list)
	}
	return n
}
