package measure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Contender is one way to do the work that is compared.
type Contender struct {
	Name   string
	Before func(ctx context.Context) error // prepares a round and is not timed; nil means nothing to do
	Run    func(ctx context.Context) error // is timed
	After  func(ctx context.Context) error // tidies up after a Run, is not timed and may be nil
	End    func(ctx context.Context) error // tidies up after the last round, however it went; may be nil
}

// Race lets every contender run once in each round and returns the times in the
// order of the contenders. A tenth more rounds warm up and do not count. It
// stops at the first error, or when ctx ends.
func Race(ctx context.Context, rounds int, contenders ...Contender) (_ []Series, err error) {
	defer func() {
		for _, c := range contenders {
			if c.End != nil {
				err = errors.Join(err, c.End(context.WithoutCancel(ctx)))
			}
		}
	}()
	all := make([]Series, len(contenders))
	for i := range all {
		all[i] = make(Series, 0, rounds)
	}
	warm := rounds/10 + 1
	// What a contender leaves to the kernel, such as taking a network namespace
	// apart, costs whoever comes next: the order must not be the same always.
	order := rand.New(rand.NewPCG(uint64(rounds), uint64(len(contenders)))) //nolint:gosec // an order, not a secret
	for round := range warm + rounds {
		for _, k := range order.Perm(len(contenders)) {
			took, err := contenders[k].once(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", contenders[k].Name, round+1, err)
			}
			if round >= warm {
				all[k] = append(all[k], took)
			}
		}
	}
	return all, nil
}

func (c Contender) once(ctx context.Context) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if c.Before != nil {
		if err := c.Before(ctx); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	err := c.Run(ctx)
	took := time.Since(began)
	if c.After != nil {
		// Also after an error, and when ctx has ended: nothing may be left.
		if tidy := c.After(context.WithoutCancel(ctx)); err == nil {
			err = tidy
		}
	}
	return took, err
}
