package spool_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/spool"
)

func TestHeadAndTail(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		want   string
		budget cove.Bytes
	}{
		"fits exactly":    {strings.Repeat("x", 100), strings.Repeat("x", 100), 100},
		"one too many":    {strings.Repeat("x", 101), strings.Repeat("x", 38) + "\n" + spool.Marker + strings.Repeat("x", 38), 100},
		"lines":           {strings.Repeat("a\n", 60), strings.Repeat("a\n", 19) + spool.Marker + strings.Repeat("a\n", 19), 100},
		"small budget":    {strings.Repeat("y", 65), strings.Repeat("y", 20) + "\n" + spool.Marker + strings.Repeat("y", 20), 1},
		"two-byte runes":  {"a" + strings.Repeat("é", 100), "a" + strings.Repeat("é", 18) + "\n" + spool.Marker + strings.Repeat("é", 19), 100},
		"four-byte runes": {strings.Repeat("😀", 50), strings.Repeat("😀", 9) + "\n" + spool.Marker + strings.Repeat("😀", 9), 100},
		"binary":          {strings.Repeat("\xff\xfe", 60), strings.Repeat("\xff\xfe", 19) + "\n" + spool.Marker + strings.Repeat("\xff\xfe", 19), 100},
	} {
		t.Run(name, func(t *testing.T) {
			for _, memory := range []cove.Bytes{7, 1000} {
				l := spool.New(spool.Config{Root: newRoot(t), Name: "o", Budget: c.budget, MemoryBytes: memory})
				write(t, l, cove.Stderr, c.text)
				l.Close()
				_, got := l.Summary()
				want := cove.Output{Data: []byte(c.want), Bytes: int64(len(c.text)), Lines: int64(strings.Count(c.text, "\n")), Truncated: c.text != c.want}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("with %d bytes of memory: %s", memory, d)
				}
				if utf8.ValidString(c.text) && !utf8.Valid(got.Data) {
					t.Error("a character was cut in two")
				}
			}
		})
	}
}

// TestQuietStreamIsHeardOverALoudOne: an error message must reach the answer
// however much the other stream wrote before it.
func TestQuietStreamIsHeardOverALoudOne(t *testing.T) {
	l := spool.New(spool.Config{Root: newRoot(t), Name: "o", MemoryBytes: 1 << 10, MaxBytes: 8 << 10})
	write(t, l, cove.Stdout, strings.Repeat("noise\n", 10_000))
	write(t, l, cove.Stderr, "fatal: no such file\n")
	write(t, l, cove.Stdout, "the end\n")
	l.Close()
	stdout, stderr := l.Summary()
	if string(stderr.Data) != "fatal: no such file\n" || stderr.Truncated {
		t.Errorf("got %+v", stderr)
	}
	if !bytes.HasSuffix(stdout.Data, []byte("noise\nthe end\n")) || stdout.Bytes != 60_008 {
		t.Errorf("got %d bytes that end in %q", stdout.Bytes, stdout.Data[len(stdout.Data)-20:])
	}
	p := page(t, l, cove.OutputRange{Stream: cove.Stderr})
	if d := cmp.Diff(&cove.OutputPage{Next: -1, Dropped: 20}, p); d != "" {
		t.Error(d)
	}
}
