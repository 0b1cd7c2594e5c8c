package spool_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/spool"
)

func TestBadRangesAreNamed(t *testing.T) {
	l := spool.New(spool.Config{})
	write(t, l, cove.Stdout, "12345")
	write(t, l, cove.Stderr, "1")
	for field, ranges := range map[string][]cove.OutputRange{
		"offset": {{Offset: -1}, {Offset: 7}, {Offset: 6, Stream: cove.Stdout}, {Offset: 2, Stream: cove.Stderr}, {Offset: -1, Grep: "x"}},
		"limit":  {{Limit: -1}, {Limit: 1<<20 + 1}},
		"stream": {{Stream: "stdin"}},
		"grep":   {{Grep: "("}, {Grep: strings.Repeat("x", 1025)}, {Grep: `(a)\1`}, {Grep: "((a{900}){900}){900}"}},
	} {
		for _, r := range ranges {
			_, err := l.Page(r)
			wantCode(t, err, cove.Invalid, field+": ")
		}
	}
	for _, r := range []cove.OutputRange{{Offset: 6}, {Limit: 1 << 20}, {Offset: 1, Stream: cove.Stderr}} {
		if p := page(t, l, r); p.Next != -1 {
			t.Errorf("%+v: got %+v", r, p)
		}
	}
}

func TestPagesHaveADefaultSize(t *testing.T) {
	l := spool.New(spool.Config{MemoryBytes: cove.MiB})
	write(t, l, cove.Stdout, strings.Repeat("x", 100_000))
	if p := page(t, l, cove.OutputRange{}); len(p.Data) != 64<<10 || p.Next != 64<<10 || p.Total != 100_000 {
		t.Errorf("got %d bytes, next %d, total %d", len(p.Data), p.Next, p.Total)
	}
	// Followers get pieces of that size, too.
	l.Close()
	if got := follow(t, l, 0); len(got) != 2 || len(got[0].Data) != 64<<10 {
		t.Errorf("got %d chunks", len(got))
	}
}

func TestGrep(t *testing.T) {
	l := spool.New(spool.Config{Root: newRoot(t), Name: "o", MemoryBytes: 50})
	for i := range 100 {
		write(t, l, cove.Stdout, fmt.Sprintf("step %d ok\n", i))
		if i%25 == 10 {
			write(t, l, cove.Stderr, fmt.Sprintf("warning: %d", i))
			write(t, l, cove.Stderr, " is odd\n")
		}
	}
	write(t, l, cove.Stdout, "step last")
	for name, c := range map[string]struct {
		r    cove.OutputRange
		want string
		next int64
	}{
		"both streams": {cove.OutputRange{Grep: "warning|last"}, "warning: 10 is odd\nwarning: 35 is odd\nwarning: 60 is odd\nwarning: 85 is odd\nstep last\n", -1},
		"one stream":   {cove.OutputRange{Grep: " 1?1 ", Stream: cove.Stdout}, "step 1 ok\nstep 11 ok\n", -1},
		"no match":     {cove.OutputRange{Grep: "error"}, "", -1},
		"an offset":    {cove.OutputRange{Grep: "step", Stream: cove.Stdout, Offset: 1079}, "step 99 ok\nstep last\n", -1},
		"a full page":  {cove.OutputRange{Grep: "step", Stream: cove.Stdout, Limit: 20}, "step 0 ok\nstep 1 ok\n", 20},
		"a line that does not fit": {
			cove.OutputRange{Grep: "step", Stream: cove.Stdout, Limit: 19}, "step 0 ok\n", 10,
		},
		"a line cut": {cove.OutputRange{Grep: "odd", Stream: cove.Stderr, Limit: 8}, "warning\n", 19},
	} {
		t.Run(name, func(t *testing.T) {
			p := page(t, l, c.r)
			if d := cmp.Diff(c.want, string(p.Data)); d != "" || p.Next != c.next || p.Offset != c.r.Offset {
				t.Errorf("next %d, want %d; %s", p.Next, c.next, d)
			}
		})
	}
}

func TestGrepOfLongLines(t *testing.T) {
	l := spool.New(spool.Config{Root: newRoot(t), Name: "o"})
	long := strings.Repeat("x", 100_000)
	write(t, l, cove.Stdout, "a"+long+"needle\nshort needle\n"+long)
	p := page(t, l, cove.OutputRange{Grep: "needle"})
	if string(p.Data) != "short needle\n" {
		t.Errorf("got %d bytes", len(p.Data))
	}
	p = page(t, l, cove.OutputRange{Grep: "^a", Limit: 1 << 20})
	if len(p.Data) != 64<<10+1 || p.Next != -1 {
		t.Errorf("got %d bytes, next %d", len(p.Data), p.Next)
	}
}

func TestGrepStopsNowAndThen(t *testing.T) {
	l := spool.New(spool.Config{Root: newRoot(t), Name: "o", MaxBytes: 20 * cove.MiB})
	line := strings.Repeat("x", 1023) + "\n"
	for range 18 << 10 {
		write(t, l, cove.Stdout, line)
	}
	write(t, l, cove.Stdout, "needle\n")
	p := page(t, l, cove.OutputRange{Grep: "^needle"})
	if len(p.Data) != 0 || p.Next != 16<<20 {
		t.Fatalf("got %q, next %d", p.Data, p.Next)
	}
	p = page(t, l, cove.OutputRange{Grep: "^needle", Offset: p.Next})
	if string(p.Data) != "needle\n" || p.Next != -1 {
		t.Errorf("got %q, next %d", p.Data, p.Next)
	}
	if err := l.Remove(); err != nil {
		t.Error(err)
	}
}
