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
	return Leftover(ctx, s.groups, times, func(ctx context.Context) error {
		box, err := s.create(ctx)
		if err != nil {
			return err
		}
		return box.Destroy(context.WithoutCancel(ctx))
	})
}

// Leftover does something that many times and returns how long one took, and what
// of this process, of those below it and of the control groups below some
// directories is there more than before. once must leave nothing on purpose.
func Leftover(ctx context.Context, groups []string, times int, once func(context.Context) error) (each time.Duration, left Census, err error) {
	for range 1 + times/50 { // whatever is made once is made before counting
		if err := once(ctx); err != nil {
			return 0, left, err
		}
	}
	base, err := settled(ctx, groups, Census{})
	if err != nil {
		return 0, left, err
	}
	began := time.Now()
	for range times {
		if err := once(ctx); err != nil {
			return 0, left, err
		}
	}
	each = time.Since(began) / time.Duration(max(1, times))
	now, err := settled(ctx, groups, base)
	return each, now.Less(base), err
}

// settled counts until nothing is there beyond a base, or until the count has
// not changed for a while.
func settled(ctx context.Context, groups []string, base Census) (Census, error) {
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
		now, err := Count(groups...)
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
