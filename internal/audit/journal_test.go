package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/audit"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func newDir(t testing.TB) string { return filepath.Join(t.TempDir(), "journal") }

func mustOpen(t testing.TB, cfg audit.Config) *audit.Journal {
	t.Helper()
	j, err := audit.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func mustClose(t testing.TB, j *audit.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustAppend(t testing.TB, j *audit.Journal, e cove.Event) cove.Event {
	t.Helper()
	if err := j.Append(t.Context(), &e, false); err != nil {
		t.Fatal(err)
	}
	return e
}

func sample(i int) cove.Event {
	return cove.Event{
		Kind: "process.exec", Phase: cove.Intent, Principal: "key_1", Tenant: fmt.Sprintf("tenant%d", i%3),
		Session: "01h00000000000000000000000", Provider: "fake", Effect: cove.Allow,
		Data: json.RawMessage(fmt.Sprintf(`{"command":"%032d","length":%d}`, i, i)),
	}
}

// fill makes a closed journal of n lines in several segments.
func fill(t testing.TB, dir string, n int) []cove.Event {
	t.Helper()
	j := mustOpen(t, audit.Config{Dir: dir, Node: "n1", SegmentBytes: 2 * cove.KiB})
	events := make([]cove.Event, 0, n)
	for i := range n {
		events = append(events, mustAppend(t, j, sample(i)))
	}
	mustClose(t, j)
	return events
}

func collect(t testing.TB, seq func(func(cove.Event, error) bool)) []cove.Event {
	t.Helper()
	var events []cove.Event
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func mustVerify(t testing.TB, dir string) audit.Report {
	t.Helper()
	r, err := audit.Verify(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantCode(t testing.TB, err error, code cove.Code, words ...string) {
	t.Helper()
	if cove.CodeOf(err) != code {
		t.Fatalf("got %v, want code %s", err, code)
	}
	for _, w := range words {
		if !strings.Contains(cove.MessageOf(err)+cove.RemedyOf(err), w) {
			t.Errorf("%q and its remedy %q lack %q", cove.MessageOf(err), cove.RemedyOf(err), w)
		}
	}
}

func TestAppendAndReadBack(t *testing.T) {
	dir := newDir(t)
	want := fill(t, dir, 40)
	for i, e := range want {
		if e.Seq != int64(i+1) || e.Time.IsZero() || e.Node != "n1" {
			t.Fatalf("line %d got seq %d, time %s, node %q", i+1, e.Seq, e.Time, e.Node)
		}
	}
	if got := collect(t, audit.Read(t.Context(), dir, cove.EventFilter{})); !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
	j := mustOpen(t, audit.Config{Dir: dir, Node: "n2"})
	next := mustAppend(t, j, sample(40))
	if next.Seq != 41 || next.Node != "n2" {
		t.Errorf("after reopening got line %d of node %q, want 41 of n2", next.Seq, next.Node)
	}
	want = append(want, next)
	if got := collect(t, j.Events(t.Context(), cove.EventFilter{})); !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
	mustClose(t, j)
	r := mustVerify(t, dir)
	if !r.OK() || r.Lines != 41 || r.Segments < 5 || r.Unanchored != 0 || r.Head.Seq != 41 || r.Anchor != r.Head {
		t.Errorf("unexpected report %+v", r)
	}
	if !r.First.Equal(want[0].Time) || !r.Last.Equal(next.Time) {
		t.Errorf("report says %s to %s, want %s to %s", r.First, r.Last, want[0].Time, next.Time)
	}
}

func TestFilesAreThePlatformsOwn(t *testing.T) {
	dir := newDir(t)
	fill(t, dir, 20)
	for name, mode := range map[string]os.FileMode{
		dir: 0o700, dir + ".key": 0o600, dir + ".anchor": 0o600,
		filepath.Join(dir, "journal-00000001.jsonl"): 0o600, filepath.Join(dir, "journal-00000002.jsonl"): 0o600,
		filepath.Join(dir, "lock"): 0o600,
	} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %o, want %o", name, info.Mode().Perm(), mode)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 3 {
		t.Errorf("got %v, %v; want the folder, the key and the anchor and no leftovers", entries, err)
	}
}

func TestKeysAndPlacesCanBeChosen(t *testing.T) {
	home := t.TempDir()
	cfg := audit.Config{
		Dir:     filepath.Join(home, "j") + "/",
		KeyFile: filepath.Join(home, "secret"), AnchorFile: filepath.Join(home, "elsewhere"),
	}
	j := mustOpen(t, cfg)
	mustAppend(t, j, sample(1))
	mustClose(t, j)
	if r, err := cfg.Verify(t.Context()); err != nil || !r.OK() || r.Lines != 1 {
		t.Errorf("got %+v, %v", r, err)
	}
	if r, err := audit.Verify(t.Context(), cfg.Dir); err != nil || r.OK() {
		t.Errorf("a journal passed without its key and anchor: %+v, %v", r, err)
	}
}

func TestBadConfigIsNamed(t *testing.T) {
	for field, cfg := range map[string]audit.Config{
		"journal.dir":             {},
		"journal.segment_bytes":   {Dir: "x", SegmentBytes: -1},
		"journal.sync_interval":   {Dir: "x", SyncInterval: -1},
		"journal.anchor_interval": {Dir: "x", AnchorInterval: -1},
	} {
		_, err := audit.Open(cfg)
		wantCode(t, err, cove.Invalid, field)
		_, err = cfg.Verify(t.Context())
		wantCode(t, err, cove.Invalid, field)
	}
}

func TestSecondOpenerIsRefused(t *testing.T) {
	dir := newDir(t)
	j := mustOpen(t, audit.Config{Dir: dir})
	_, err := audit.Open(audit.Config{Dir: dir})
	wantCode(t, err, cove.Conflict, fmt.Sprintf("process %d", os.Getpid()), dir)
	mustAppend(t, j, sample(1))
	mustClose(t, j)
	mustClose(t, mustOpen(t, audit.Config{Dir: dir}))
}

func TestOpenSaysWhatIsWrongWithThePlace(t *testing.T) {
	dir := newDir(t)
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := audit.Open(audit.Config{Dir: dir})
	wantCode(t, err, cove.Unavailable, dir, "not a directory", "folder")
	_, err = audit.Open(audit.Config{Dir: newDir(t), KeyFile: filepath.Join(dir, "k")})
	wantCode(t, err, cove.Unavailable, "not a directory")
	_, err = audit.Open(audit.Config{Dir: newDir(t), AnchorFile: filepath.Join(dir, "a")})
	wantCode(t, err, cove.Unavailable, "not a directory")

	busy := newDir(t)
	if err := os.MkdirAll(filepath.Join(busy, "lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = audit.Open(audit.Config{Dir: busy})
	wantCode(t, err, cove.Unavailable, busy)
}

func TestConcurrentAppendsHaveNoGaps(t *testing.T) {
	dir := newDir(t)
	j := mustOpen(t, audit.Config{Dir: dir, SegmentBytes: 16 * cove.KiB})
	const writers, each = 50, 20
	var mu sync.Mutex
	durable := map[int64]string{}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				e := sample(w*each + i)
				sync := i%2 == 0
				if err := j.Append(t.Context(), &e, sync); err != nil {
					t.Error(err)
					return
				}
				if sync {
					mu.Lock()
					durable[e.Seq] = string(e.Data)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	// The file is read as another process would, with the journal still open.
	onDisk := collect(t, audit.Read(t.Context(), dir, cove.EventFilter{}))
	for i, e := range onDisk {
		if e.Seq != int64(i+1) {
			t.Fatalf("line %d has number %d", i+1, e.Seq)
		}
		if want, ok := durable[e.Seq]; ok && string(e.Data) != want {
			t.Errorf("line %d holds %s, want %s", e.Seq, e.Data, want)
		}
	}
	if len(onDisk) != writers*each || len(durable) != writers*each/2 {
		t.Errorf("got %d lines, %d durable", len(onDisk), len(durable))
	}
	if r := mustVerify(t, dir); !r.OK() || r.Anchor.Seq == 0 {
		t.Errorf("a journal being written does not pass: %+v", r)
	}
	mustClose(t, j)
	if r := mustVerify(t, dir); !r.OK() || r.Lines != writers*each || r.Unanchored != 0 {
		t.Errorf("unexpected report %+v", r)
	}
}

func TestBadEventsAreRefusedAndTakeNoNumber(t *testing.T) {
	j := mustOpen(t, audit.Config{Dir: newDir(t)})
	huge := json.RawMessage(`"` + strings.Repeat("x", audit.MaxLine-100) + `"`)
	long := json.RawMessage(`"` + strings.Repeat("x", audit.MaxLine-1000) + `"`)
	for name, e := range map[string]cove.Event{
		"not JSON":        {Data: json.RawMessage(`{"a":`)},
		"two values":      {Data: json.RawMessage(`1 2`)},
		"not UTF-8":       {Data: json.RawMessage("\"\xff\"")},
		"too much data":   {Data: json.RawMessage(`"` + strings.Repeat("x", audit.MaxLine) + `"`)},
		"too long a line": {Data: huge},
		"too long a rule": {Rule: strings.Repeat("é", audit.MaxLine/2)},
	} {
		t.Run(name, func(t *testing.T) {
			wantCode(t, j.Append(t.Context(), &e, true), cove.Invalid)
			if e.Seq != 0 {
				t.Errorf("the refused event got number %d", e.Seq)
			}
		})
	}
	if e := mustAppend(t, j, sample(1)); e.Seq != 1 {
		t.Errorf("the first good line has number %d", e.Seq)
	}
	fits := mustAppend(t, j, cove.Event{Kind: "x", Data: long})
	got := collect(t, j.Events(t.Context(), cove.EventFilter{After: 1}))
	if len(got) != 1 || got[0].Seq != fits.Seq || string(got[0].Data) != string(long) {
		t.Error("a long line does not come back as it was written")
	}
}

func TestDataStaysOnOneLine(t *testing.T) {
	dir := newDir(t)
	j := mustOpen(t, audit.Config{Dir: dir})
	mustAppend(t, j, cove.Event{Kind: "a", Data: json.RawMessage("{\n \"x\":\r\n 1}")})
	mustAppend(t, j, cove.Event{Kind: "b\n\"\\\x00\xff\u2028é"})
	mustClose(t, j)
	got := collect(t, audit.Read(t.Context(), dir, cove.EventFilter{}))
	if len(got) != 2 || string(got[0].Data) != `{"x":1}` || got[1].Kind != "b\n\"\\\x00\ufffd\u2028é" {
		t.Errorf("got %+v", got)
	}
}

func TestDigestIsKeyedAndStable(t *testing.T) {
	dir := newDir(t)
	j := mustOpen(t, audit.Config{Dir: dir})
	one, two := j.Digest([]byte("ls")), j.Digest([]byte("ls -l"))
	if len(one) != 32 || one == two || one != j.Digest([]byte("ls")) {
		t.Errorf("got %q and %q", one, two)
	}
	mustClose(t, j)
	if again := mustOpen(t, audit.Config{Dir: dir}).Digest([]byte("ls")); again != one {
		t.Errorf("after a restart got %q, want %q", again, one)
	}
	if other := mustOpen(t, audit.Config{Dir: newDir(t)}).Digest([]byte("ls")); other == one {
		t.Error("two nodes have the same digests")
	}
}

func TestClosedJournalTakesNothing(t *testing.T) {
	j := mustOpen(t, audit.Config{Dir: newDir(t)})
	mustClose(t, j)
	mustClose(t, j)
	e := sample(1)
	wantCode(t, j.Append(t.Context(), &e, false), cove.Unavailable, "closed")
	for _, err := range j.Events(t.Context(), cove.EventFilter{}) {
		wantCode(t, err, cove.Unavailable)
	}
}

func TestOutcomesAreWrittenAfterTheCallerLeft(t *testing.T) {
	j := mustOpen(t, audit.Config{Dir: newDir(t)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := sample(1)
	if err := j.Append(ctx, &e, false); err != nil || e.Seq != 1 {
		t.Errorf("got line %d, %v", e.Seq, err)
	}
}

func TestLineIsWhatTheDocumentationSays(t *testing.T) {
	dir := newDir(t)
	fill(t, dir, 1)
	data, err := os.ReadFile(filepath.Join(dir, "journal-00000001.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	if fields["prev"] != strings.Repeat("0", 64) || len(fields["sum"].(string)) != 64 || !bytes.HasSuffix(data, []byte("\"}\n")) {
		t.Errorf("unexpected line %s", data)
	}
}
