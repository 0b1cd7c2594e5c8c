package measure

import (
	"slices"
	"time"
)

// Series is what one contender took, round by round.
type Series []time.Duration

// Median returns the time that half of the rounds stayed below; 0 of none.
func (s Series) Median() time.Duration { return s.quantile(0.5) }

// P95 returns the time that 95 of 100 rounds stayed below; 0 of none.
func (s Series) P95() time.Duration { return s.quantile(0.95) }

// P99 returns the time that 99 of 100 rounds stayed below; 0 of none.
func (s Series) P99() time.Duration { return s.quantile(0.99) }

func (s Series) quantile(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	return at(slices.Sorted(slices.Values(s)), q)
}

// Over returns how many times longer s took than base: the median of the ratios
// of each round, because what disturbs one contender in a round mostly disturbs
// the others too. It is 0 where there is no round to compare.
func (s Series) Over(base Series) float64 {
	var ratios []float64
	for i := range min(len(s), len(base)) {
		if base[i] > 0 {
			ratios = append(ratios, float64(s[i])/float64(base[i]))
		}
	}
	if len(ratios) == 0 {
		return 0
	}
	slices.Sort(ratios)
	return at(ratios, 0.5)
}

func at[T any](sorted []T, q float64) T {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
