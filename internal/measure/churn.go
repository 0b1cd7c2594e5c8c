package measure

import (
	"context"
	"errors"
	"time"
)

// settleTime bounds the wait until what was destroyed has gone: the kernel
// takes some things apart later.
const settleTime = 30 * time.Second

// Churn makes and destroys that many sandboxes, and returns how long one took
// and what is there more than before.
func (s *Stage) Churn(ctx context.Context, times int) (each time.Duration, left Census, err error) {
	make1 := func() error {
		box, err := s.create(ctx)
		if err != nil {
			return err
		}
		return box.Destroy(context.WithoutCancel(ctx))
	}
	for range 1 + times/50 { // whatever is made once is made before counting
		if err := make1(); err != nil {
			return 0, left, err
		}
	}
	base, err := s.settled(ctx, Census{})
	if err != nil {
		return 0, left, err
	}
	began := time.Now()
	for range times {
		if err := make1(); err != nil {
			return 0, left, err
		}
	}
	each = time.Since(began) / time.Duration(max(1, times))
	now, err := s.settled(ctx, base)
	return each, now.Less(base), err
}

// settled counts until nothing is there beyond a base, or until the count has
// not changed for a while.
func (s *Stage) settled(ctx context.Context, base Census) (Census, error) {
	const (
		pause = 25 * time.Millisecond
		still = 20 // times the same
	)
	ctx, cancel := context.WithTimeoutCause(ctx, settleTime, errRestless)
	defer cancel()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	last, same := Census{}, 0
	for {
		now, err := Count(s.groups...)
		if err != nil || now.Less(base).Surplus() == 0 {
			return now, err
		}
		if same++; now != last {
			last, same = now, 0
		}
		if same == still && base == (Census{}) {
			return now, nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errRestless) {
				return now, nil
			}
			return now, ctx.Err()
		case <-tick.C:
		}
	}
}

var errRestless = errors.New("the counts do not come to rest")
