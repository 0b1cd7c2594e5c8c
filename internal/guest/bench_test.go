//go:build linux

package guest_test

import (
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// BenchmarkTrue compares a program through an agent with one of the host, turn
// by turn, so that a busy machine is busy for both.
func BenchmarkTrue(b *testing.B) {
	path, err := exec.LookPath("true")
	if err != nil {
		b.Skip(err)
	}
	for name, p := range places() {
		b.Run(name, func(b *testing.B) {
			c := connect(b, p)
			var inside, host time.Duration
			n := 0
			for b.Loop() {
				begun := time.Now()
				proc, err := c.Start(b.Context(), cove.Command{Argv: []string{path}})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := proc.Wait(b.Context()); err != nil {
					b.Fatal(err)
				}
				inside += time.Since(begun)
				begun = time.Now()
				if err := exec.CommandContext(b.Context(), path).Run(); err != nil {
					b.Fatal(err)
				}
				host += time.Since(begun)
				n++
			}
			b.ReportMetric(float64(inside)/float64(host), "ratio")
			b.ReportMetric(float64((inside-host).Microseconds())/float64(n), "added-µs/op")
		})
	}
}

// BenchmarkManyTrue measures programs that are started by many at once.
func BenchmarkManyTrue(b *testing.B) {
	path, err := exec.LookPath("true")
	if err != nil {
		b.Skip(err)
	}
	const many = 32
	crowd := func(run func() error) time.Duration {
		begun := time.Now()
		var wg sync.WaitGroup
		for range many {
			wg.Go(func() {
				for range 4 {
					if err := run(); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return time.Since(begun)
	}
	c := connect(b, place{namespaces: true})
	var inside, host time.Duration
	for b.Loop() {
		inside += crowd(func() error {
			proc, err := c.Start(b.Context(), cove.Command{Argv: []string{path}})
			if err == nil {
				_, err = proc.Wait(b.Context())
			}
			return err
		})
		host += crowd(func() error { return exec.CommandContext(b.Context(), path).Run() })
	}
	b.ReportMetric(float64(host)/float64(inside), "throughput-ratio")
}
