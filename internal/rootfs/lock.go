package rootfs

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/cove-sandbox/cove/internal/flock"
)

// retryEvery is how often a lock is looked at that another process has.
const retryEvery = 20 * time.Millisecond

// lock waits for the right to change names, until ctx ends. The kernel gives it
// back when the process ends, however it ends.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	root, err := s.top.make()
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		ok, err := flock.Try(f, flock.Exclusive)
		if ok {
			return func() { _ = f.Close() }, nil
		}
		if err == nil {
			err = wait(ctx, retryEvery)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
}

// wait waits, or returns the error of ctx.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
