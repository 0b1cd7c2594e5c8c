package redis

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// How often who waits for a lock looks whether it is free.
const (
	lockPause    = 5 * time.Millisecond // at first
	maxLockPause = 250 * time.Millisecond
)

// Lock implements cove.Directory. The lock is renewed until unlock is called; it
// is free as soon as the lease of this node is no more.
func (s *Store) Lock(ctx context.Context, name string) (unlock func(), err error) {
	owner := string(cove.NewID())
	for pause := lockPause; ; pause = min(2*pause, maxLockPause) {
		a, err := s.run(ctx, scripts.takeLock, name, owner, s.lease.Milliseconds())
		if err != nil {
			return nil, err
		}
		if a.is("ok", 0) {
			return s.keep(name, owner)
		}
		// Not all at the same moment.
		if err := s.pause(ctx, pause/2+rand.N(pause)); err != nil { //nolint:gosec // no secret
			return nil, err
		}
	}
}

// keep renews a lock until it is let go, or the store is closed.
func (s *Store) keep(name, owner string) (unlock func(), err error) {
	free, done, once := make(chan struct{}), make(chan struct{}), sync.Once{}
	begun := s.during(func() {
		defer close(done)
		defer s.letGo(name, owner)
		tick := time.NewTicker(s.lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-free:
				return
			case <-s.closed:
				return
			case <-tick.C:
				s.renew(name, owner)
			}
		}
	})
	if !begun {
		return nil, cove.Errorf(cove.Unavailable, "the store is closed")
	}
	return func() {
		once.Do(func() { close(free) })
		<-done
	}, nil
}

func (s *Store) renew(name, owner string) {
	ctx, cancel := context.WithTimeout(context.Background(), s.lease)
	defer cancel()
	if _, err := s.run(ctx, scripts.renewLock, name, owner, s.lease.Milliseconds()); err != nil {
		s.log.WarnContext(ctx, "a lock could not be renewed", slog.String("lock", name), slog.Any("error", err))
	}
}

// letGo is also done while the store is being closed, and so not by run. A lock
// that cannot be let go ends by itself.
func (s *Store) letGo(name, owner string) {
	ctx, cancel := context.WithTimeout(context.Background(), ioTimeout)
	defer cancel()
	err := scripts.freeLock.Run(ctx, s.client, []string{s.prefix}, s.node, "", 0, name, owner).Err()
	if err != nil {
		s.log.WarnContext(ctx, "a lock could not be let go; it ends by itself", slog.String("lock", name), slog.Any("error", err))
	}
}
