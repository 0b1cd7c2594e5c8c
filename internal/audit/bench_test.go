package audit_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/audit"
)

func BenchmarkAppend(b *testing.B) {
	j := mustOpen(b, audit.Config{Dir: newDir(b), Node: "n1"})
	e := sample(1)
	b.ReportAllocs()
	for b.Loop() {
		if err := j.Append(b.Context(), &e, false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendDurable(b *testing.B) {
	for _, writers := range []int{1, 32} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			j := mustOpen(b, audit.Config{Dir: newDir(b), Node: "n1"})
			work := make(chan struct{})
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					e := sample(1)
					for range work {
						if err := j.Append(b.Context(), &e, true); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for b.Loop() {
				work <- struct{}{}
			}
			close(work)
			wg.Wait()
		})
	}
}

func BenchmarkDigest(b *testing.B) {
	j := mustOpen(b, audit.Config{Dir: newDir(b)})
	command := []byte("python3 -c 'print(1)'")
	b.ReportAllocs()
	for b.Loop() {
		j.Digest(command)
	}
}

func BenchmarkVerify(b *testing.B) {
	dir := newDir(b)
	j := mustOpen(b, audit.Config{Dir: dir})
	const n = 10000
	for i := range n {
		mustAppend(b, j, sample(i))
	}
	mustClose(b, j)
	for b.Loop() {
		if r := mustVerify(b, dir); !r.OK() {
			b.Fatal(r.Problems)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/line")
}

func BenchmarkEventsAfterHead(b *testing.B) {
	j := mustOpen(b, audit.Config{Dir: newDir(b), SegmentBytes: cove.MiB})
	const n = 10000
	for i := range n {
		mustAppend(b, j, sample(i))
	}
	for b.Loop() {
		if got := collect(b, j.Events(b.Context(), cove.EventFilter{After: n - 1})); len(got) != 1 {
			b.Fatalf("got %d lines", len(got))
		}
	}
}
