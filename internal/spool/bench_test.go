package spool_test

import (
	"bytes"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/spool"
)

// BenchmarkExec is what a foreground program costs.
func BenchmarkExec(b *testing.B) {
	root := newRoot(b)
	for name, size := range map[string]int{"nothing": 0, "100 bytes": 100, "20 KiB": 20 << 10} {
		p := bytes.Repeat([]byte{'x'}, size)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l := spool.New(spool.Config{Root: root, Name: "o"})
				_, _ = l.Writer(cove.Stdout).Write(p)
				l.Close()
				l.Summary()
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	l := spool.New(spool.Config{Root: newRoot(b), Name: "o"})
	p := bytes.Repeat([]byte{'x'}, 32<<10)
	w := l.Writer(cove.Stdout)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = w.Write(p)
	}
	l.Close()
}

func BenchmarkPage(b *testing.B) {
	l := spool.New(spool.Config{Root: newRoot(b), Name: "o"})
	_, _ = l.Writer(cove.Stdout).Write(bytes.Repeat([]byte("a line of output\n"), 500_000))
	l.Close()
	for name, r := range map[string]cove.OutputRange{
		"64 KiB":     {Offset: 4 << 20},
		"grep 8 MiB": {Grep: "no such line"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Page(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestShortOutputIsCheap holds the promise that most programs pay next to
// nothing.
func TestShortOutputIsCheap(t *testing.T) {
	p := bytes.Repeat([]byte{'x'}, 100)
	allocs := testing.AllocsPerRun(100, func() {
		l := spool.New(spool.Config{Name: "o"})
		_, _ = l.Writer(cove.Stdout).Write(p)
		l.Close()
		l.Summary()
	})
	if allocs > 3 {
		t.Errorf("100 bytes of output took %v allocations", allocs)
	}
}
