package measure

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Crowd is how many programs run at once, and how many of them in a row in one
// round: together they are one Run of a contender.
type Crowd struct{ Workers, Each int }

// Of returns a contender that runs c in a crowd. It has neither Before nor
// After, and is for contenders that need none.
func (k Crowd) Of(c Contender) Contender {
	return Contender{Name: c.Name, Run: func(ctx context.Context) error {
		errs := make([]error, k.Workers)
		var wg sync.WaitGroup
		for i := range k.Workers {
			wg.Go(func() {
				for range k.Each {
					if errs[i] = c.Run(ctx); errs[i] != nil {
						return
					}
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	}}
}

// PerSecond returns how many programs a crowd ran in a second, at the median.
func (k Crowd) PerSecond(s Series) float64 {
	m := s.Median()
	if m == 0 {
		return 0
	}
	return float64(k.Workers*k.Each) * float64(time.Second) / float64(m)
}
