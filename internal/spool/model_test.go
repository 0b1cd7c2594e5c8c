package spool_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/spool"
)

// model is a log that keeps everything, in the plainest way.
type model struct {
	max  int64
	all  []byte
	side []cove.Stream // of each byte of all
}

func (m *model) write(s cove.Stream, p []byte) {
	m.all = append(m.all, p...)
	for range p {
		m.side = append(m.side, s)
	}
}

// selected returns the kept bytes of a stream or of both, and how many were
// written.
func (m *model) selected(s cove.Stream) (kept []byte, written int64) {
	for i, b := range m.all {
		if s != "" && s != m.side[i] {
			continue
		}
		if written++; int64(i) < m.max {
			kept = append(kept, b)
		}
	}
	return kept, written
}

func (m *model) page(r cove.OutputRange) *cove.OutputPage {
	kept, written := m.selected(r.Stream)
	p := &cove.OutputPage{Offset: r.Offset, Total: int64(len(kept)), Dropped: written - int64(len(kept)), Next: -1}
	p.Data = kept[r.Offset:]
	if int64(len(p.Data)) > r.Limit {
		p.Data = p.Data[:r.Limit]
		p.Next = r.Offset + r.Limit
	}
	return p
}

func (m *model) summary(s cove.Stream, budget int64) (o cove.Output) {
	whole := &model{max: 1 << 40, all: m.all, side: m.side}
	text, written := whole.selected(s)
	o.Bytes, o.Lines, o.Truncated = written, int64(bytes.Count(text, []byte("\n"))), written > budget
	if !o.Truncated {
		o.Data = text
		return o
	}
	room := budget - int64(len(spool.Marker)) - 1
	head, tail := text[:room-room/2], text[written-room/2:]
	o.Data = bytes.Clone(head)
	if !bytes.HasSuffix(head, []byte("\n")) {
		o.Data = append(o.Data, '\n')
	}
	o.Data = append(append(o.Data, spool.Marker...), tail...)
	return o
}

// grep returns every line of the kept bytes that matches.
func (m *model) grep(s cove.Stream, re *regexp.Regexp) string {
	kept, _ := m.selected(s)
	var b strings.Builder
	for line := range bytes.Lines(kept) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if re.Match(line) {
			b.Write(line)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

var streams = []cove.Stream{cove.Stdout, cove.Stderr}

func checkAgainst(t *rapid.T, l *spool.Log, m *model, window, budget int64) {
	opts := cmpopts.EquateEmpty()
	for _, s := range append(streams, "") {
		kept, _ := m.selected(s)
		r := cove.OutputRange{
			Stream: s,
			Offset: rapid.Int64Range(0, int64(len(kept))).Draw(t, "offset"),
			Limit:  rapid.Int64Range(1, 200).Draw(t, "limit"),
		}
		got, err := l.Page(r)
		if d := cmp.Diff(m.page(r), got, opts); err != nil || d != "" {
			t.Fatalf("page %+v: %v %s", r, err, d)
		}
		checkGrep(t, l, m, s)
	}
	stdout, stderr := l.Summary()
	for i, got := range []cove.Output{stdout, stderr} {
		if d := cmp.Diff(m.summary(streams[i], budget), got, opts); d != "" {
			t.Fatalf("summary of %s: %s", streams[i], d)
		}
	}
	checkFollow(t, l, m, window)
	if l.Total() != int64(len(m.all)) || l.Dropped() != max(int64(len(m.all))-m.max, 0) {
		t.Fatalf("%d written, %d dropped", l.Total(), l.Dropped())
	}
}

func checkGrep(t *rapid.T, l *spool.Log, m *model, s cove.Stream) {
	re := regexp.MustCompile(rapid.SampledFrom([]string{"a", "^b", "c$", "^$", "a.*b", "."}).Draw(t, "pattern"))
	limit := rapid.Int64Range(60, 300).Draw(t, "limit")
	var got strings.Builder
	for offset := int64(0); offset >= 0; {
		p, err := l.Page(cove.OutputRange{Stream: s, Grep: re.String(), Offset: offset, Limit: limit})
		if err != nil || p.Next >= 0 && p.Next <= offset || int64(len(p.Data)) > limit {
			t.Fatalf("grep at %d: %+v, %v", offset, p, err)
		}
		got.Write(p.Data)
		offset = p.Next
	}
	if d := cmp.Diff(m.grep(s, re), got.String()); d != "" {
		t.Fatalf("grep %s: %s", re, d)
	}
}

// checkFollow demands all kept bytes, then at most one gap, then all to the end,
// of which at least a window is there.
func checkFollow(t *rapid.T, l *spool.Log, m *model, window int64) {
	start := rapid.Int64Range(0, int64(len(m.all))).Draw(t, "start")
	at, gaps, got := start, 0, int64(0)
	for c, err := range l.Follow(t.Context(), start) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Offset != at {
			if gaps++; c.Offset < at || at < m.max && start < m.max && at != m.max {
				t.Fatalf("a gap from %d to %d although %d bytes are kept", at, c.Offset, m.max)
			}
		}
		at = c.Offset + int64(len(c.Data))
		got += int64(len(c.Data))
		if !bytes.Equal(c.Data, m.all[c.Offset:at]) {
			t.Fatalf("at %d got %q, want %q", c.Offset, c.Data, m.all[c.Offset:at])
		}
		for i := c.Offset; i < at; i++ {
			if m.side[i] != c.Stream {
				t.Fatalf("byte %d is of %s, want %s", i, c.Stream, m.side[i])
			}
		}
	}
	if total := int64(len(m.all)); at != total || gaps > 1 || got < min(total-start, window/2) {
		t.Fatalf("followed from %d to %d of %d, %d bytes, %d gaps", start, at, total, got, gaps)
	}
}

func TestLogAgreesWithItsModel(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	rapid.Check(t, func(t *rapid.T) {
		cfg := spool.Config{
			Root: root, Name: "o",
			MemoryBytes: cove.Bytes(rapid.IntRange(1, 64).Draw(t, "memory")),
			MaxBytes:    cove.Bytes(rapid.IntRange(1, 400).Draw(t, "max")),
			Budget:      cove.Bytes(rapid.IntRange(64, 200).Draw(t, "budget")),
		}
		l := spool.New(cfg)
		defer func() {
			if err := l.Remove(); err != nil {
				t.Fatal(err)
			}
		}()
		m := &model{max: int64(cfg.MaxBytes)}
		for range rapid.IntRange(0, 30).Draw(t, "writes") {
			s := rapid.SampledFrom(streams).Draw(t, "stream")
			p := rapid.SliceOfN(rapid.SampledFrom([]byte("abc\n")), 0, 50).Draw(t, "text")
			if n, err := l.Writer(s).Write(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
			m.write(s, p)
		}
		l.Close()
		window := int64(cfg.MemoryBytes)
		checkAgainst(t, l, m, window, int64(cfg.Budget))
		if err := l.Persist(); err != nil {
			t.Fatal(err)
		}
		if err := l.Persist(); err != nil {
			t.Fatal(err)
		}
		checkAgainst(t, l, m, window, int64(cfg.Budget))
		again, err := spool.Open(root, "o")
		if err != nil {
			t.Fatal(err)
		}
		checkAgainst(t, again, m, window, int64(cfg.Budget))
	})
}
