package engine_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

var errStopped = errors.New("the world has stopped")

// stopper stops the world at the n-th thing that a server does to what is around
// it: the store, the journal, the archives and the provider. Whoever comes to it
// then waits, as a process does that was killed, until the test is over.
type stopper struct {
	at int // the step to stop at, counted from 1

	mu      sync.Mutex
	armed   bool
	n       int
	inside  int    // who is doing what a step was for
	last    string // the step it stopped at
	stopped chan struct{}
	free    chan struct{}
	// kill, if it is set, is what happens instead of waiting.
	kill func()
}

func newStopper(at int) *stopper {
	return &stopper{at: at, stopped: make(chan struct{}), free: make(chan struct{})}
}

// arm begins to count.
func (s *stopper) arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = true
}

// release lets those go who wait; they get an error.
func (s *stopper) release() { close(s.free) }

// step is before something that is done.
func (s *stopper) step(name string) error { return s.pass(name, false) }

// enter is step for what other goroutines may be in the middle of when the world
// stops: it stops when they are done, and have called leave.
func (s *stopper) enter(name string) error { return s.pass(name, true) }

func (s *stopper) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inside--
	s.settle()
}

// settle tells that the world has stopped, once it has. The caller holds mu.
func (s *stopper) settle() {
	if s.n == s.at && s.inside == 0 {
		close(s.stopped)
		s.inside = -1
	}
}

func (s *stopper) pass(name string, enters bool) error {
	s.mu.Lock()
	if s.armed && s.n < s.at {
		if s.n++; s.n == s.at {
			s.last = name
			if s.kill != nil {
				s.kill()
			}
			s.settle()
		}
	}
	over := s.n == s.at
	if !over && enters {
		s.inside++
	}
	s.mu.Unlock()
	if over {
		<-s.free
		return errStopped
	}
	return nil
}

func (s *stopper) stoppedAt() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// watch puts the stopper between an engine and what is around it. The provider
// calls it from its hook.
func (s *stopper) watch(c *engine.Config) {
	c.Store = stepStore{c.Store, s}
	c.Journal = stepJournal{c.Journal, s}
	c.Archives = stepArchives{c.Archives, s}
	c.Folders = stepFolders{c.Folders, s}
}

// hook is for the provider. It leaves out what happens to files: an archive is
// read ahead of the one who writes it, and the streams have steps of their own.
func (s *stopper) hook(step string, _ cove.ID) error {
	if step == "file" {
		return nil
	}
	return s.step("provider " + step)
}

type stepStore struct {
	cove.Store

	s *stopper
}

func (d stepStore) PutSession(ctx context.Context, rec *cove.Session) error {
	if err := d.s.enter("store put session " + string(rec.State)); err != nil {
		return err
	}
	defer d.s.leave()
	return d.Store.PutSession(ctx, rec)
}

func (d stepStore) DeleteSession(ctx context.Context, id cove.ID) error {
	if err := d.s.enter("store delete session"); err != nil {
		return err
	}
	defer d.s.leave()
	return d.Store.DeleteSession(ctx, id)
}

func (d stepStore) PutSnapshot(ctx context.Context, rec *cove.Snapshot) error {
	if err := d.s.enter("store put snapshot"); err != nil {
		return err
	}
	defer d.s.leave()
	return d.Store.PutSnapshot(ctx, rec)
}

func (d stepStore) DeleteSnapshot(ctx context.Context, id cove.ID) error {
	if err := d.s.enter("store delete snapshot"); err != nil {
		return err
	}
	defer d.s.leave()
	return d.Store.DeleteSnapshot(ctx, id)
}

func (d stepStore) TakeClaim(ctx context.Context, c cove.Claim, now time.Time) (*cove.Claim, error) {
	if err := d.s.enter("store take claim"); err != nil {
		return nil, err
	}
	defer d.s.leave()
	return d.Store.TakeClaim(ctx, c, now)
}

func (d stepStore) SetClaim(ctx context.Context, tenant, key string, result cove.ID) error {
	if err := d.s.enter("store set claim"); err != nil {
		return err
	}
	defer d.s.leave()
	return d.Store.SetClaim(ctx, tenant, key, result)
}

func (d stepStore) DropClaim(ctx context.Context, tenant, key string) error {
	if err := d.s.enter("store drop claim"); err != nil {
		return err
	}
	defer d.s.leave()
	return d.Store.DropClaim(ctx, tenant, key)
}

func (d stepStore) PutKey(ctx context.Context, k *cove.Key) error {
	if err := d.s.enter("store put key"); err != nil {
		return err
	}
	defer d.s.leave()
	return d.Store.PutKey(ctx, k)
}

func (d stepStore) PutRun(ctx context.Context, r *cove.Run) error {
	if err := d.s.enter("store put run"); err != nil {
		return err
	}
	defer d.s.leave()
	return d.Store.PutRun(ctx, r)
}

func (d stepStore) AddUsage(ctx context.Context, tenant string, by cove.Consumption) (cove.Consumption, error) {
	if err := d.s.enter("store add usage"); err != nil {
		return cove.Consumption{}, err
	}
	defer d.s.leave()
	return d.Store.AddUsage(ctx, tenant, by)
}

type stepJournal struct {
	cove.Journal

	s *stopper
}

func (d stepJournal) Append(ctx context.Context, e *cove.Event, durable bool) error {
	if err := d.s.enter("journal " + e.Kind + " " + string(e.Phase)); err != nil {
		return err
	}
	defer d.s.leave()
	return d.Journal.Append(ctx, e, durable)
}

type stepArchives struct {
	cove.Archives

	s *stopper
}

func (d stepArchives) Put(ctx context.Context, id cove.ID, r io.Reader) (cove.Bytes, error) {
	if err := d.s.step("archives put"); err != nil {
		return 0, err
	}
	return d.Archives.Put(ctx, id, stepReader{r, d.s, "archives write"})
}

func (d stepArchives) Get(ctx context.Context, id cove.ID) (io.ReadCloser, error) {
	if err := d.s.step("archives get"); err != nil {
		return nil, err
	}
	r, err := d.Archives.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{stepReader{r, d.s, "archives read"}, r}, nil
}

func (d stepArchives) Delete(ctx context.Context, id cove.ID) error {
	if err := d.s.step("archives delete"); err != nil {
		return err
	}
	return d.Archives.Delete(ctx, id)
}

// stepReader makes every piece of a stream a step.
type stepReader struct {
	r    io.Reader
	s    *stopper
	name string
}

func (d stepReader) Read(p []byte) (int, error) {
	if err := d.s.step(d.name); err != nil {
		return 0, err
	}
	return d.r.Read(p)
}
