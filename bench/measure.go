package main

import (
	"slices"
	"time"
)

// interleave runs every contender once in turn, samples times over, so that
// noise hits all of them alike, and returns the median of each.
func interleave(samples int, contenders ...func() error) ([]time.Duration, error) {
	times := make([][]time.Duration, len(contenders))
	for i := range samples + samples/10 {
		for k, run := range contenders {
			began := time.Now()
			if err := run(); err != nil {
				return nil, err
			}
			if i >= samples/10 { // the first tenth warms up
				times[k] = append(times[k], time.Since(began))
			}
		}
	}
	medians := make([]time.Duration, len(times))
	for k, list := range times {
		slices.Sort(list)
		medians[k] = list[len(list)/2]
	}
	return medians, nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
