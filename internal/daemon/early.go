package daemon

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// early is a spare that is prepared while the parts of a platform for one run
// are still put together. A nil one has none.
type early struct {
	mold cove.Mold
	made chan struct{} // closed when the preparing has ended

	mu    sync.Mutex
	spare cove.Spare // guarded by mu; nil before it is made, where it cannot be, and once it is taken
}

// prepareEarly begins to make a spare, if the provider of the mold can. What
// goes wrong is not told: whoever asks for a sandbox then finds the same out. What
// is made becomes what heat makes of it.
func prepareEarly(ctx context.Context, list []cove.Provider, m cove.Mold, within time.Duration, heat func(cove.Spare) cove.Spare) *early {
	i := slices.IndexFunc(list, func(p cove.Provider) bool { return p.Name() == m.Provider })
	if i < 0 {
		return nil
	}
	prepare := preparing(list[i], m)
	if prepare == nil {
		return nil
	}
	e := &early{mold: m, made: make(chan struct{})}
	go func() {
		defer close(e.made)
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		if spare, err := prepare(ctx, m); err == nil {
			spare = heat(spare)
			e.mu.Lock()
			e.spare = spare
			e.mu.Unlock()
		}
	}()
	return e
}

// preparing returns how a provider prepares sandboxes of a mold; nil: it cannot.
func preparing(p cove.Provider, m cove.Mold) func(context.Context, cove.Mold) (cove.Spare, error) {
	if m.Solo {
		if soloist, ok := cove.As[cove.Soloist](p); ok {
			return soloist.PrepareSolo
		}
		return nil
	}
	if preparer, ok := cove.As[cove.Preparer](p); ok {
		return preparer.Prepare
	}
	return nil
}

// take hands the spare to the first who wants one of its mold, when it is
// ready.
func (e *early) take(ctx context.Context, m cove.Mold) (cove.Spare, bool) {
	if e == nil || e.mold != m {
		return nil, false
	}
	select {
	case <-e.made:
	case <-ctx.Done():
		return nil, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	spare := e.spare
	e.spare = nil
	return spare, spare != nil
}

// discard frees the spare if nobody took it.
func (e *early) discard() error {
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), discardTime)
	defer cancel()
	if spare, ok := e.take(ctx, e.mold); ok {
		return spare.Discard(ctx)
	}
	return nil
}

// discardTime bounds the freeing of a spare that nobody wanted.
const discardTime = 30 * time.Second
