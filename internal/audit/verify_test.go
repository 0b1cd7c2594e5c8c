package audit_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/audit"
)

// snapshot is a journal with everything that belongs to it, to be changed and
// put back.
type snapshot struct {
	dir   string
	files map[string][]byte
}

func take(t testing.TB, dir string) snapshot {
	t.Helper()
	s := snapshot{dir: dir, files: map[string][]byte{}}
	for _, name := range append(segmentFiles(t, dir), dir+".key", dir+".anchor") {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s.files[name] = data
	}
	return s
}

func (s snapshot) restore(t failer, segments []string) {
	for _, name := range segments {
		if s.files[name] == nil {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, data := range s.files {
		if now, err := os.ReadFile(name); err == nil && bytes.Equal(now, data) {
			continue
		}
		if err := replace(name, data); err != nil {
			t.Fatal(err)
		}
	}
}

type failer interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func lines(data []byte) [][]byte {
	return slices.Collect(bytes.Lines(data))
}

// mutations are every single thing that can be done to a journal by somebody
// who has no key. Each draws what it needs and says what it did.
var mutations = map[string]func(t *rapid.T, s snapshot, segments []string) string{
	"flip a byte": func(t *rapid.T, s snapshot, segments []string) string {
		name := rapid.SampledFrom(segments).Draw(t, "segment")
		at := rapid.IntRange(0, len(s.files[name])-1).Draw(t, "byte")
		with := byte(rapid.IntRange(1, 255).Draw(t, "with"))
		return do(t, name, func(b []byte) []byte { b[at] ^= with; return b }, "byte %d", at)
	},
	"delete a line": func(t *rapid.T, s snapshot, segments []string) string {
		name := rapid.SampledFrom(segments).Draw(t, "segment")
		all := lines(s.files[name])
		at := rapid.IntRange(0, len(all)-1).Draw(t, "line")
		return do(t, name, func([]byte) []byte { return bytes.Join(slices.Delete(all, at, at+1), nil) }, "line %d", at)
	},
	"double a line": func(t *rapid.T, s snapshot, segments []string) string {
		name := rapid.SampledFrom(segments).Draw(t, "segment")
		all := lines(s.files[name])
		from := rapid.IntRange(0, len(all)-1).Draw(t, "from")
		to := rapid.IntRange(0, len(all)).Draw(t, "to")
		return do(t, name, func([]byte) []byte { return bytes.Join(slices.Insert(all, to, all[from]), nil) }, "%d at %d", from, to)
	},
	"swap two lines": func(t *rapid.T, s snapshot, segments []string) string {
		// The two may be in different segments.
		names := rapid.SliceOfN(rapid.SampledFrom(segments), 2, 2).Draw(t, "segments")
		a, b := lines(s.files[names[0]]), lines(s.files[names[1]])
		if names[0] == names[1] {
			b = a
		}
		i := rapid.IntRange(0, len(a)-1).Draw(t, "i")
		k := rapid.IntRange(0, len(b)-1).Draw(t, "k")
		if names[0] == names[1] && i == k {
			k = (i + 1) % len(b)
		}
		a[i], b[k] = b[k], a[i]
		do(t, names[0], func([]byte) []byte { return bytes.Join(a, nil) }, "")
		return do(t, names[1], func([]byte) []byte { return bytes.Join(b, nil) }, "%s:%d and %d", filepath.Base(names[0]), i, k)
	},
	"truncate": func(t *rapid.T, s snapshot, segments []string) string {
		name := rapid.SampledFrom(segments).Draw(t, "segment")
		at := rapid.IntRange(0, len(s.files[name])-1).Draw(t, "byte")
		return do(t, name, func(b []byte) []byte { return b[:at] }, "at %d", at)
	},
	"cut the last lines": func(t *rapid.T, s snapshot, segments []string) string {
		name := segments[len(segments)-1]
		all := lines(s.files[name])
		left := rapid.IntRange(0, len(all)-1).Draw(t, "left")
		return do(t, name, func([]byte) []byte { return bytes.Join(all[:left], nil) }, "%d left", left)
	},
	"cut the last segments": func(t *rapid.T, _ snapshot, segments []string) string {
		left := rapid.IntRange(0, len(segments)-1).Draw(t, "left")
		for _, name := range segments[left:] {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		return fmt.Sprintf("%d left", left)
	},
	"delete a segment": func(t *rapid.T, _ snapshot, segments []string) string {
		name := rapid.SampledFrom(segments).Draw(t, "segment")
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		return name
	},
	"rename segments": func(t *rapid.T, s snapshot, segments []string) string {
		i := rapid.IntRange(0, len(segments)-1).Draw(t, "i")
		k := rapid.IntRange(0, len(segments)).Draw(t, "k")
		if i == k {
			k = (i + 1) % len(segments)
		}
		if k == len(segments) {
			to := filepath.Join(s.dir, fmt.Sprintf("journal-%08d.jsonl", len(segments)+1))
			if err := os.Rename(segments[i], to); err != nil {
				t.Fatal(err)
			}
			return segments[i] + " to the end"
		}
		do(t, segments[i], func([]byte) []byte { return s.files[segments[k]] }, "")
		return do(t, segments[k], func([]byte) []byte { return s.files[segments[i]] }, "with %d", i)
	},
	"change the anchor": func(t *rapid.T, s snapshot, _ []string) string {
		at := rapid.IntRange(0, len(s.files[s.dir+".anchor"])-1).Draw(t, "byte")
		with := byte(rapid.IntRange(1, 255).Draw(t, "with"))
		return do(t, s.dir+".anchor", func(b []byte) []byte { b[at] ^= with; return b }, "byte %d", at)
	},
	"remove the anchor": func(t *rapid.T, s snapshot, _ []string) string {
		if err := os.Remove(s.dir + ".anchor"); err != nil {
			t.Fatal(err)
		}
		return ""
	},
	"remove the key": func(t *rapid.T, s snapshot, _ []string) string {
		if err := os.Remove(s.dir + ".key"); err != nil {
			t.Fatal(err)
		}
		return ""
	},
	"another key": func(t *rapid.T, s snapshot, _ []string) string {
		return do(t, s.dir+".key", func([]byte) []byte { return []byte(strings.Repeat("ab", 32)) }, "")
	},
}

func do(t *rapid.T, name string, change func([]byte) []byte, format string, args ...any) string {
	if err := edit(name, change); err != nil {
		t.Fatal(err)
	}
	return filepath.Base(name) + " " + fmt.Sprintf(format, args...)
}

func TestEveryMutationIsFound(t *testing.T) {
	dir := newDir(t)
	fill(t, dir, 23)
	s := take(t, dir)
	segments := segmentFiles(t, dir)
	if len(segments) < 3 {
		t.Fatalf("only %d segments", len(segments))
	}
	for name, mutate := range mutations {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				did := mutate(t, s, segments)
				r, err := audit.Verify(t.Context(), dir)
				found, listErr := filepath.Glob(filepath.Join(dir, "journal-*.jsonl"))
				if listErr != nil {
					t.Fatal(listErr)
				}
				s.restore(t, found)
				if err != nil {
					t.Fatalf("%s: %v", did, err)
				}
				if r.OK() {
					t.Fatalf("%s was not found", did)
				}
			})
		})
	}
	if r := mustVerify(t, dir); !r.OK() {
		t.Errorf("put back as it was, the journal does not pass: %v", r.Problems)
	}
}

// TestEveryByteCounts is the mutation test without chance, for one segment.
func TestEveryByteCounts(t *testing.T) {
	dir := newDir(t)
	fill(t, dir, 4)
	name := segmentFiles(t, dir)[0]
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	for at, b := range data {
		if _, err := f.WriteAt([]byte{b ^ 0x20}, int64(at)); err != nil {
			t.Fatal(err)
		}
		if mustVerify(t, dir).OK() {
			t.Fatalf("byte %d of %d does not matter: %q", at, len(data), data[max(0, at-20):at+1])
		}
		if _, err := f.WriteAt([]byte{b}, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if !mustVerify(t, dir).OK() {
		t.Fatal("put back as it was, the journal does not pass")
	}
	for at := range slices.Backward(data) {
		if err := f.Truncate(int64(at)); err != nil {
			t.Fatal(err)
		}
		if mustVerify(t, dir).OK() {
			t.Fatalf("cut at byte %d of %d, the journal passes", at, len(data))
		}
	}
}

func TestProblemsAreNamed(t *testing.T) {
	dir := newDir(t)
	fill(t, dir, 12)
	s := take(t, dir)
	names := segmentFiles(t, dir)
	first := lines(s.files[names[0]])
	join := func(l ...[]byte) []byte { return bytes.Join(l, nil) }
	for name, c := range map[string]struct {
		data []byte
		want []string
	}{
		"changed": {
			join(first[0], bytes.Replace(first[1], []byte("key_1"), []byte("key_2"), 1), join(first[2:]...)),
			[]string{"segment 1, line 2: changed: the line is not as it was written"},
		},
		"missing":   {join(first[0], join(first[2:]...)), []string{"segment 1, line 2: missing: lines 2 to 2 are missing before this one"}},
		"first":     {join(first[1:]...), []string{"segment 1, line 1: missing: lines 1 to 1 are missing before this one"}},
		"reordered": {join(first[0], first[2], first[1], join(first[3:]...)), []string{"segment 1, line 3: reordered: line 2 comes after line 3"}},
		"inserted":  {join(first[0], first[0], join(first[1:]...)), []string{"segment 1, line 2: inserted: line 1 is here although it was met before"}},
		"unreadable": {
			join(first[0], []byte("hello\n"), join(first[1:]...)),
			[]string{"segment 1, line 2: unreadable: this is not a line of a journal"},
		},
		"too long": {
			join(first[0], bytes.Repeat([]byte{'x'}, audit.MaxLine+1), []byte("\n"), join(first[1:]...)),
			[]string{"segment 1, line 2: unreadable: the line is longer than 1048576 bytes"},
		},
		"empty": {nil, []string{
			"segment 1: missing: the segment is empty, but another one follows",
			fmt.Sprintf("segment 2, line 1: missing: lines 1 to %d are missing before this one", len(first)),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			defer s.restore(t, nil)
			if err := replace(names[0], c.data); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range mustVerify(t, dir).Problems {
				got = append(got, p.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestTruncationIsNamed(t *testing.T) {
	dir := newDir(t)
	fill(t, dir, 12)
	names := segmentFiles(t, dir)
	if err := os.Remove(names[len(names)-1]); err != nil {
		t.Fatal(err)
	}
	r := mustVerify(t, dir)
	if len(r.Problems) != 1 || r.Problems[0].Kind != audit.Truncated || r.Problems[0].Segment != 0 ||
		!strings.Contains(r.Problems[0].String(), "the anchor knows line 12") {
		t.Errorf("got %v", r.Problems)
	}
	_, err := audit.Open(audit.Config{Dir: dir})
	wantCode(t, err, cove.Unavailable, "missing", "cove audit verify")
}

func TestForgerWithAnotherKeyIsFound(t *testing.T) {
	mine, other := newDir(t), newDir(t)
	fill(t, mine, 5)
	fill(t, other, 5)
	a, b := take(t, mine), take(t, other)
	// Lines that are right under another key, in place of ours.
	if err := os.WriteFile(segmentFiles(t, mine)[0], b.files[segmentFiles(t, other)[0]], 0o600); err != nil {
		t.Fatal(err)
	}
	if r := mustVerify(t, mine); r.OK() || r.Problems[0].Kind != audit.Changed {
		t.Errorf("got %v", r.Problems)
	}
	a.restore(t, nil)
	if err := os.WriteFile(mine+".anchor", b.files[other+".anchor"], 0o600); err != nil {
		t.Fatal(err)
	}
	if r := mustVerify(t, mine); len(r.Problems) != 1 || r.Problems[0].Kind != audit.UnknownKey {
		t.Errorf("got %v", r.Problems)
	}
	_, err := audit.Open(audit.Config{Dir: mine})
	wantCode(t, err, cove.Unavailable, "another key")
}

// TestOtherHistoryIsFound is about somebody who has the key: an old copy of the
// journal that went on another way cannot be mixed with this one.
func TestOtherHistoryIsFound(t *testing.T) {
	dir := newDir(t)
	j := mustOpen(t, audit.Config{Dir: dir})
	mustAppend(t, j, sample(1))
	mustClose(t, j)
	old := take(t, dir)
	grow := func() []byte {
		j := mustOpen(t, audit.Config{Dir: dir})
		mustAppend(t, j, sample(2))
		mustAppend(t, j, sample(3))
		mustClose(t, j)
		return take(t, dir).files[segmentFiles(t, dir)[0]]
	}
	one := lines(grow())
	old.restore(t, nil)
	two := lines(grow())
	for name, mixed := range map[string][][]byte{
		"the last line":   {two[0], two[1], one[2]},
		"the line before": {two[0], one[1], two[2]},
		"both":            {two[0], one[1], one[2]},
	} {
		if err := os.WriteFile(segmentFiles(t, dir)[0], bytes.Join(mixed, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := mustVerify(t, dir); r.OK() || r.Problems[0].Kind != audit.Inserted {
			t.Errorf("%s: got %v", name, r.Problems)
		}
	}
}

func TestAnchorThatWasPutBackIsFound(t *testing.T) {
	dir := newDir(t)
	fill(t, dir, 3)
	old, err := os.ReadFile(dir + ".anchor")
	if err != nil {
		t.Fatal(err)
	}
	fill(t, dir, 3)
	fill(t, dir, 3)
	if err := os.WriteFile(dir+".anchor", old, 0o600); err != nil {
		t.Fatal(err)
	}
	r := mustVerify(t, dir)
	if len(r.Problems) != 1 || r.Problems[0].Kind != audit.Truncated || r.Unanchored != 6 {
		t.Errorf("got %+v", r)
	}
}

func TestVerifySaysWhenItCannot(t *testing.T) {
	_, err := audit.Verify(t.Context(), newDir(t))
	wantCode(t, err, cove.NotFound, "no journal")
	_, err = audit.Verify(t.Context(), t.TempDir())
	wantCode(t, err, cove.NotFound, "no journal")

	dir := newDir(t)
	fill(t, dir, 2)
	if err := os.Chmod(dir+".key", 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = audit.Verify(t.Context(), dir)
	wantCode(t, err, cove.Unavailable, "mode 0644", "chmod 600")
	if err := os.Chmod(dir+".key", 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"short", strings.Repeat("x", 64)} {
		if err := os.WriteFile(dir+".key", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = audit.Verify(t.Context(), dir)
		wantCode(t, err, cove.Unavailable, "hex digits", "backup")
	}
	fresh := newDir(t)
	mustClose(t, mustOpen(t, audit.Config{Dir: fresh}))
	if r := mustVerify(t, fresh); !r.OK() || r.Lines != 0 || r.Segments != 1 {
		t.Errorf("a new journal: %+v", r)
	}
}

func TestVerifyWorksBesideAWriter(t *testing.T) {
	dir := newDir(t)
	j := mustOpen(t, audit.Config{Dir: dir, SegmentBytes: 8 * cove.KiB, SyncInterval: 1})
	const n = 1000
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for i := range n {
			e := sample(i)
			if err := j.Append(t.Context(), &e, i%50 == 0); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	var before int64
	for before < n && !t.Failed() {
		r := mustVerify(t, dir)
		if !r.OK() || r.Lines < before || r.Lines < r.Anchor.Seq {
			t.Errorf("%d lines, %d anchored, %d before: %v", r.Lines, r.Anchor.Seq, before, r.Problems)
		}
		before = r.Lines
	}
	<-stopped
}

func TestReportIsBounded(t *testing.T) {
	dir := newDir(t)
	j := mustOpen(t, audit.Config{Dir: dir})
	for i := range 2500 {
		mustAppend(t, j, sample(i))
	}
	mustClose(t, j)
	for _, name := range segmentFiles(t, dir) {
		err := edit(name, func(b []byte) []byte {
			var kept [][]byte
			for i, l := range lines(b) {
				if i%2 == 0 {
					kept = append(kept, l)
				}
			}
			return bytes.Join(kept, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r := mustVerify(t, dir)
	if len(r.Problems) != 1000 || r.More == 0 {
		t.Errorf("got %d problems and %d more", len(r.Problems), r.More)
	}
}
