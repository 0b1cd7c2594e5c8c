package spool_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/spool"
)

// pass hands all that a log has to another one, as a server does that takes up a program.
func pass(t *testing.T, from, to *spool.Log) {
	t.Helper()
	skip := func(s cove.Stream, n int64) {
		w, ok := to.Writer(s).(interface{ Skip(n int64) })
		if !ok {
			t.Fatal("a writer skips nothing")
		}
		w.Skip(n)
	}
	for c, err := range from.FollowAll(t.Context(), func(stdout, stderr int64) { skip(cove.Stdout, stdout); skip(cove.Stderr, stderr) }) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.Writer(c.Stream).Write(c.Data); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDroppedOutputIsCounted: a log that was filled from another one, which dropped most
// of what was written, says how much was written to each stream, and has its ends.
func TestDroppedOutputIsCounted(t *testing.T) {
	for name, first := range map[string]cove.Bytes{"kept in memory": 300, "kept in a file": 40 * cove.KiB} {
		t.Run(name, func(t *testing.T) {
			old := spool.New(spool.Config{Root: newRoot(t), Name: "log", MaxBytes: first, MemoryBytes: 8 * cove.KiB})
			for i := range 5000 {
				write(t, old, cove.Stdout, strings.Repeat("o", 99)+"\n")
				if i%100 == 50 {
					write(t, old, cove.Stderr, "error\n")
				}
			}
			write(t, old, cove.Stdout, "the end\n")
			old.Close()

			log := spool.New(spool.Config{Root: newRoot(t), Name: "log", MemoryBytes: 8 * cove.KiB, Limit: 400_000})
			pass(t, old, log)
			if log.Total() != 5000*100+8+50*6 || log.Total() != old.Total() || !log.Exceeded() {
				t.Errorf("%d bytes were written, want %d; exceeded %t", log.Total(), old.Total(), log.Exceeded())
			}
			log.Close()
			for range 2 { // before and after it is on the disk
				stdout, stderr := log.Summary()
				if stdout.Bytes != 5000*100+8 || stderr.Bytes != 50*6 || !stdout.Truncated || !stderr.Truncated {
					t.Errorf("%d bytes of stdout (cut %t) and %d of stderr (cut %t)", stdout.Bytes, stdout.Truncated, stderr.Bytes, stderr.Truncated)
				}
				if !bytes.HasPrefix(stdout.Data, []byte("ooo")) || !bytes.HasSuffix(stdout.Data, []byte("o\nthe end\n")) || !bytes.Contains(stderr.Data, []byte("truncated")) {
					t.Errorf("the ends are %.10q and %q, and of stderr %q", stdout.Data, stdout.Data[len(stdout.Data)-20:], stderr.Data)
				}
				page, err := log.Page(cove.OutputRange{Limit: 1 << 20})
				if err != nil || page.Total+page.Dropped != log.Total() || page.Total < int64(first) || page.Total > int64(first)+16<<10 {
					t.Errorf("%d bytes are kept and %d dropped of %d: %v", page.Total, page.Dropped, log.Total(), err)
				}
				if err := log.Persist(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
