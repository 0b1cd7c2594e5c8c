package audit_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/audit"
)

// addTo appends bytes to the last segment, as a crash in the middle of a write
// or somebody with an editor does.
func addTo(t *testing.T, dir string, data []byte) {
	t.Helper()
	names := segmentFiles(t, dir)
	f, err := os.OpenFile(names[len(names)-1], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTornLineIsCutAndSaid(t *testing.T) {
	whole := audit.EncodeEvent(&cove.Event{Seq: 6, Kind: "x"})
	for name, torn := range map[string][]byte{
		"one byte":                []byte("{"),
		"half a line":             whole[:len(whole)/2],
		"all but the newline":     whole,
		"zeros":                   make([]byte, 4096),
		"more than a line can be": bytes.Repeat([]byte("x"), audit.MaxLine+100),
	} {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			fill(t, dir, 5)
			addTo(t, dir, torn)
			if r := mustVerify(t, dir); len(r.Problems) != 1 || r.Problems[0].Kind != audit.Truncated {
				t.Errorf("before the recovery got %v", r.Problems)
			}
			if got := collect(t, audit.Read(t.Context(), dir, cove.EventFilter{})); len(got) != 5 {
				t.Errorf("before the recovery got %d lines", len(got))
			}
			var log bytes.Buffer
			j := mustOpen(t, audit.Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			mustAppend(t, j, sample(1))
			mustClose(t, j)
			for _, word := range []string{"level=WARN", fmt.Sprintf(" bytes=%d ", len(torn)), " began=", "/journal-0000000"} {
				if !strings.Contains(log.String(), word) || log.Len() > 2000 {
					t.Errorf("the log lacks %q: %.2000s", word, log.String())
				}
			}
			got := collect(t, audit.Read(t.Context(), dir, cove.EventFilter{After: 5}))
			want := fmt.Sprintf(`{"dropped":%d}`, len(torn))
			if len(got) != 2 || got[0].Kind != "journal.recovered" || got[0].Phase != cove.EngineNote || string(got[0].Data) != want {
				t.Errorf("got %+v, want a note with %s", got, want)
			}
			if r := mustVerify(t, dir); !r.OK() || r.Lines != 7 {
				t.Errorf("after the recovery got %+v", r)
			}
		})
	}
}

func TestTornLineOfALiveWriterIsNoProblem(t *testing.T) {
	dir := newDir(t)
	j := mustOpen(t, audit.Config{Dir: dir})
	mustAppend(t, j, sample(1))
	addTo(t, dir, []byte(`{"seq":2,"ti`))
	if r := mustVerify(t, dir); !r.OK() || r.Lines != 1 {
		t.Errorf("got %+v", r)
	}
	mustClose(t, j)
	if r := mustVerify(t, dir); r.OK() {
		t.Error("a torn line passes although nobody writes")
	}
}

// crash makes the journal look as if its process had died after line n: what
// was anchored later is put back.
func crash(t *testing.T, dir string, n, more int) {
	t.Helper()
	fill(t, dir, n)
	anchor, err := os.ReadFile(dir + ".anchor")
	if err != nil {
		t.Fatal(err)
	}
	j := mustOpen(t, audit.Config{Dir: dir, SegmentBytes: 2 * cove.KiB, SyncInterval: 1 << 40})
	for i := range more {
		mustAppend(t, j, sample(i))
	}
	mustClose(t, j)
	if err := os.WriteFile(dir+".anchor", anchor, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpenGoesOnAfterUnanchoredLines(t *testing.T) {
	for _, n := range []int{0, 1, 20} {
		for _, more := range []int{1, 30} {
			t.Run(fmt.Sprintf("%d and %d", n, more), func(t *testing.T) {
				dir := newDir(t)
				crash(t, dir, n, more)
				if r := mustVerify(t, dir); !r.OK() || r.Unanchored != int64(more) {
					t.Errorf("before the recovery got %+v", r)
				}
				j := mustOpen(t, audit.Config{Dir: dir})
				if e := mustAppend(t, j, sample(1)); e.Seq != int64(n+more+1) {
					t.Errorf("the next line has number %d", e.Seq)
				}
				mustClose(t, j)
				if r := mustVerify(t, dir); !r.OK() || r.Lines != int64(n+more+1) || r.Unanchored != 0 {
					t.Errorf("after the recovery got %+v", r)
				}
			})
		}
	}
}

func TestEmptyLastSegmentIsNoDamage(t *testing.T) {
	dir := newDir(t)
	fill(t, dir, 5)
	n := len(segmentFiles(t, dir))
	empty := filepath.Join(dir, fmt.Sprintf("journal-%08d.jsonl", n+1))
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := mustVerify(t, dir); !r.OK() {
		t.Errorf("got %v", r.Problems)
	}
	mustClose(t, mustOpen(t, audit.Config{Dir: dir})) // the anchor now stands in the empty segment
	j := mustOpen(t, audit.Config{Dir: dir})
	if e := mustAppend(t, j, sample(1)); e.Seq != 6 {
		t.Errorf("the next line has number %d", e.Seq)
	}
	if got := collect(t, j.Events(t.Context(), cove.EventFilter{After: 5})); len(got) != 1 {
		t.Errorf("got %d lines", len(got))
	}
	mustClose(t, j)
	mustClose(t, mustOpen(t, audit.Config{Dir: dir}))
	if r := mustVerify(t, dir); !r.OK() || r.Lines != 6 {
		t.Errorf("got %+v", r)
	}
}

func TestOpenRefusesWhatWasTamperedWith(t *testing.T) {
	last := func(t *testing.T, dir string) string {
		names := segmentFiles(t, dir)
		return names[len(names)-1]
	}
	for name, c := range map[string]struct {
		do   func(t *testing.T, dir string) error
		says string
	}{
		"the last line changed": {func(t *testing.T, dir string) error {
			return edit(last(t, dir), func(b []byte) []byte { b[len(b)-100] ^= 1; return b })
		}, "byte"},
		"the last line swapped": {func(t *testing.T, dir string) error {
			return edit(last(t, dir), func(b []byte) []byte {
				l := lines(b)
				l[len(l)-1] = l[len(l)-2]
				return bytes.Join(l, nil)
			})
		}, "which the anchor knows"},
		"the last line cut": {func(t *testing.T, dir string) error {
			return edit(last(t, dir), func(b []byte) []byte { return b[:len(b)-1] })
		}, "ends before line"},
		"the last segment cut short": {func(t *testing.T, dir string) error {
			return edit(last(t, dir), func([]byte) []byte { return nil })
		}, "ends before line"},
		"a line added": {func(t *testing.T, dir string) error {
			addTo(t, dir, append(audit.EncodeEvent(&cove.Event{Seq: 11, Kind: "x"}), '\n'))
			return nil
		}, "was changed"},
		"a line doubled": {func(t *testing.T, dir string) error {
			return edit(last(t, dir), func(b []byte) []byte { l := lines(b); return append(b, l[len(l)-1]...) })
		}, "follows line"},
		"garbage added": {func(t *testing.T, dir string) error {
			addTo(t, dir, []byte("hello\n"))
			return nil
		}, "not a line"},
		"no segments": {func(t *testing.T, dir string) error {
			for _, name := range segmentFiles(t, dir) {
				if err := os.Remove(name); err != nil {
					return err
				}
			}
			return nil
		}, "is empty"},
		"no key":    {func(_ *testing.T, dir string) error { return os.Remove(dir + ".key") }, "is missing"},
		"no anchor": {func(_ *testing.T, dir string) error { return os.Remove(dir + ".anchor") }, "is missing"},
		"a damaged anchor": {func(_ *testing.T, dir string) error {
			return os.WriteFile(dir+".anchor", []byte("x"), 0o600)
		}, "is damaged"},
		"a changed anchor": {func(_ *testing.T, dir string) error {
			return edit(dir+".anchor", func(b []byte) []byte { return bytes.Replace(b, []byte(`"seq":10`), []byte(`"seq":11`), 1) })
		}, "was changed"},
		"an anchor that is a folder": {func(_ *testing.T, dir string) error {
			if err := os.Remove(dir + ".anchor"); err != nil {
				return err
			}
			return os.Mkdir(dir+".anchor", 0o700)
		}, "is a directory"},
		"a key for all": {func(_ *testing.T, dir string) error { return os.Chmod(dir+".key", 0o640) }, "can be read by others"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			fill(t, dir, 10)
			if err := c.do(t, dir); err != nil {
				t.Fatal(err)
			}
			before := segmentFiles(t, dir)
			for range 2 { // the first refusal must not leave the lock behind
				_, err := audit.Open(audit.Config{Dir: dir})
				wantCode(t, err, cove.Unavailable, c.says)
				if cove.RemedyOf(err) == "" {
					t.Errorf("%v has no remedy", err)
				}
			}
			if after := segmentFiles(t, dir); len(after) != len(before) {
				t.Errorf("a refused open changed the segments from %v to %v", before, after)
			}
		})
	}
}

func TestOpenRefusesDamageAfterTheAnchor(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(all [][]byte) [][]byte
		says   string
	}{
		"changed": {func(l [][]byte) [][]byte { l[1][20] ^= 1; return l }, "segment 2"},
		"missing": {func(l [][]byte) [][]byte { return append(l[:1:1], l[2:]...) }, "follows line"},
		"swapped": {func(l [][]byte) [][]byte { l[0], l[1] = l[1], l[0]; return l }, "follows line"},
		"torn": {func(l [][]byte) [][]byte {
			l[len(l)-1] = l[len(l)-1][:9]
			return l
		}, "is torn"},
		"too long": {func(l [][]byte) [][]byte {
			return append(l, append(bytes.Repeat([]byte("x"), audit.MaxLine), '\n'))
		}, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			crash(t, dir, 1, 40)
			names := segmentFiles(t, dir)
			err := edit(names[1], func(b []byte) []byte { return bytes.Join(c.damage(lines(b)), nil) })
			if err != nil {
				t.Fatal(err)
			}
			_, err = audit.Open(audit.Config{Dir: dir})
			wantCode(t, err, cove.Unavailable, c.says)
		})
	}
	t.Run("a segment gone", func(t *testing.T) {
		dir := newDir(t)
		crash(t, dir, 1, 40)
		if err := os.Remove(segmentFiles(t, dir)[1]); err != nil {
			t.Fatal(err)
		}
		_, err := audit.Open(audit.Config{Dir: dir})
		wantCode(t, err, cove.Unavailable, "segment 2")
	})
	t.Run("another history", func(t *testing.T) {
		dir := newDir(t)
		fill(t, dir, 1)
		old := take(t, dir)
		fill(t, dir, 1)
		one := lines(take(t, dir).files[segmentFiles(t, dir)[0]])
		old.restore(t, nil)
		fill(t, dir, 2)
		two := lines(take(t, dir).files[segmentFiles(t, dir)[0]])
		old.restore(t, nil)
		addTo(t, dir, bytes.Join([][]byte{one[1], two[2]}, nil))
		_, err := audit.Open(audit.Config{Dir: dir})
		wantCode(t, err, cove.Unavailable, "another history")
	})
}

func TestLeftoversOfACrashedFirstOpenAreNoObstacle(t *testing.T) {
	dir := newDir(t)
	for _, name := range []string{dir + ".key.new", dir + ".anchor.new"} {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+".key", []byte(strings.Repeat("0a", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fill(t, dir, 2)
	if r := mustVerify(t, dir); !r.OK() {
		t.Errorf("got %v", r.Problems)
	}
}
