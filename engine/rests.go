package engine

import (
	"context"
	"errors"
	"sync"
	"time"
)

// restWidth is how many sessions are paused or stopped at once because their time
// is up.
const restWidth = 16

// restTime is how long one may take: those that wait must not wait for what hangs.
const restTime = 15 * time.Minute

// rests are the sessions that wait to be paused or stopped because their time is up.
// Writing files into an archive takes long, and the task that finds them must not
// wait for it: others end meanwhile.
type rests struct {
	ctx  context.Context //nolint:containedctx // it ends with the engine, not with who adds
	stop context.CancelFunc
	do   func(context.Context, *lease) (bool, error)
	done func(*lease, error) // told when do may be asked for again
	work sync.WaitGroup

	mu      sync.Mutex
	closed  bool            // guarded by mu, as all below
	waiting []*lease        // in their order, each once
	known   map[*lease]bool // those that wait or are under way
	workers int
	idle    chan struct{} // closed when no worker is left; nil before the first
	count   int64         // how many were done since somebody asked
	failed  []error       // what went wrong since then, the first few
}

// init makes it ready.
func (r *rests) init(do func(context.Context, *lease) (bool, error), done func(*lease, error)) {
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.do, r.done, r.known = do, done, map[*lease]bool{}
}

// add has a session dealt with soon, unless it waits for that already.
func (r *rests) add(l *lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.known[l] {
		return
	}
	r.known[l] = true
	r.waiting = append(r.waiting, l)
	if r.workers == 0 {
		r.idle = make(chan struct{})
	}
	if r.workers < restWidth {
		r.workers++
		r.work.Go(r.drain)
	}
}

// drain deals with those that wait until none does.
func (r *rests) drain() {
	for l := r.next(); l != nil; l = r.next() {
		ctx, cancel := context.WithTimeout(r.ctx, restTime)
		done, err := r.do(ctx, l)
		cancel()
		r.settle(l, done, err)
		// Only now: who finds it due meanwhile has added nothing.
		r.done(l, err)
	}
}

// next is the one that waits longest. nil: the worker may go.
func (r *rests) next() *lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		r.waiting = nil // and its memory
		if r.workers--; r.workers == 0 {
			close(r.idle)
		}
		return nil
	}
	l := r.waiting[0]
	r.waiting = r.waiting[1:]
	return l
}

func (r *rests) settle(l *lease, done bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, l)
	if done {
		r.count++
	}
	if err != nil && len(r.failed) < restWidth {
		r.failed = append(r.failed, err)
	}
}

// report returns how many were done since the last report, and what went wrong.
func (r *rests) report() (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.count, errors.Join(r.failed...)
	r.count, r.failed = 0, nil
	return n, err
}

// wait waits until nobody waits to be dealt with, and returns what went wrong since
// the last report.
func (r *rests) wait(ctx context.Context) error {
	r.mu.Lock()
	idle := r.idle
	r.mu.Unlock()
	if idle != nil {
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.failed...)
}

// close ends what is under way and waits for it. Those that wait stay as they are:
// the next engine finds that their time is up. It is idempotent.
func (r *rests) close() {
	r.mu.Lock()
	r.closed, r.waiting = true, nil
	r.mu.Unlock()
	r.stop()
	r.work.Wait()
}
