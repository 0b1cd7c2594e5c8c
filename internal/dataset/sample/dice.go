package sample

import (
	"fmt"
	"time"
)

// dice are numbers that look like chance and are the same every time: SplitMix64,
// written out here so that no new version of a library changes them.
type dice uint64

func (d *dice) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number from 0 to n-1.
func (d *dice) below(n int) int { return int(d.next() % uint64(n)) } //nolint:gosec // n is a small constant of ours

// between returns a number from low to high.
func (d *dice) between(low, high int) int { return low + d.below(high-low+1) }

// one returns one of a list, earlier ones more often.
func (d *dice) one(list ...string) string {
	return list[min(d.below(len(list)), d.below(len(list)))]
}

// day returns a moment within so many days from the start.
func (d *dice) day(days int) time.Time {
	return start.Add(time.Duration(d.below(days*24*60*60)) * time.Second)
}

var start = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

func moment(t time.Time) string { return t.Format("2006-01-02 15:04:05") }

func cents(n int) string { return fmt.Sprintf("%d.%02d", n/100, n%100) }
