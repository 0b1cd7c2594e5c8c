package spool_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/spool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newRoot(t testing.TB) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	return root
}

func files(t testing.TB, root *os.Root) []string {
	t.Helper()
	entries, err := os.ReadDir(root.Name())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func write(t testing.TB, l *spool.Log, s cove.Stream, text string) {
	t.Helper()
	if n, err := io.WriteString(l.Writer(s), text); n != len(text) || err != nil {
		t.Fatalf("write of %d bytes gave %d, %v", len(text), n, err)
	}
}

// follow reads a closed log to its end.
func follow(t testing.TB, l *spool.Log, offset int64) []cove.Chunk {
	t.Helper()
	var chunks []cove.Chunk
	for c, err := range l.Follow(t.Context(), offset) {
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, c)
	}
	return chunks
}

func page(t testing.TB, l *spool.Log, r cove.OutputRange) *cove.OutputPage {
	t.Helper()
	p, err := l.Page(r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantCode(t testing.TB, err error, code cove.Code, words ...string) {
	t.Helper()
	if cove.CodeOf(err) != code {
		t.Fatalf("got %v, want code %s", err, code)
	}
	for _, w := range words {
		if !strings.Contains(cove.MessageOf(err), w) {
			t.Errorf("%q lacks %q", cove.MessageOf(err), w)
		}
	}
}

func TestShortOutputStaysInMemory(t *testing.T) {
	root := newRoot(t)
	l := spool.New(spool.Config{Root: root, Name: "o1"})
	write(t, l, cove.Stdout, "one\n")
	write(t, l, cove.Stderr, "oops\n")
	write(t, l, cove.Stdout, "")
	write(t, l, cove.Stdout, "two\n")
	l.Close()
	l.Close()
	write(t, l, cove.Stdout, "too late")

	stdout, stderr := l.Summary()
	if d := cmp.Diff(cove.Output{Data: []byte("one\ntwo\n"), Bytes: 8, Lines: 2}, stdout); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(cove.Output{Data: []byte("oops\n"), Bytes: 5, Lines: 1}, stderr); d != "" {
		t.Error(d)
	}
	want := []cove.Chunk{
		{Stream: cove.Stdout, Offset: 0, Data: []byte("one\n")},
		{Stream: cove.Stderr, Offset: 4, Data: []byte("oops\n")},
		{Stream: cove.Stdout, Offset: 9, Data: []byte("two\n")},
	}
	if d := cmp.Diff(want, follow(t, l, 0)); d != "" {
		t.Error(d)
	}
	want = []cove.Chunk{{Stream: cove.Stderr, Offset: 6, Data: []byte("ps\n")}, want[2]}
	if d := cmp.Diff(want, follow(t, l, 6)); d != "" {
		t.Error(d)
	}
	if l.Total() != 13 || l.Dropped() != 0 || l.Exceeded() || l.Err() != nil {
		t.Errorf("got %d written, %d dropped, exceeded %t, %v", l.Total(), l.Dropped(), l.Exceeded(), l.Err())
	}
	if got := files(t, root); got != nil {
		t.Errorf("short output made files: %v", got)
	}
	if err := l.Remove(); err != nil {
		t.Error(err)
	}
}

func TestNoOutputAtAll(t *testing.T) {
	l := spool.New(spool.Config{})
	l.Close()
	stdout, stderr := l.Summary()
	if !cmp.Equal(stdout, cove.Output{}) || !cmp.Equal(stderr, cove.Output{}) {
		t.Errorf("got %+v and %+v", stdout, stderr)
	}
	if got := follow(t, l, 0); got != nil {
		t.Errorf("got %v", got)
	}
	if d := cmp.Diff(&cove.OutputPage{Next: -1}, page(t, l, cove.OutputRange{})); d != "" {
		t.Error(d)
	}
	for _, offset := range []int64{-1, 1} {
		for _, err := range l.Follow(t.Context(), offset) {
			wantCode(t, err, cove.Invalid, "offset")
		}
	}
}

func TestLongOutputGoesToAFile(t *testing.T) {
	root := newRoot(t)
	l := spool.New(spool.Config{Root: root, Name: "o1", MemoryBytes: 1000})
	var want strings.Builder
	for i := range 500 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		write(t, l, cove.Stdout, line)
	}
	info, err := root.Stat("o1")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v; want a file that only its owner can read", info, err)
	}
	var got strings.Builder
	for offset := int64(0); offset >= 0; {
		p := page(t, l, cove.OutputRange{Offset: offset, Limit: 777})
		if p.Offset != offset || p.Total != int64(want.Len()) || p.Dropped != 0 {
			t.Fatalf("got %+v", p)
		}
		got.Write(p.Data)
		offset = p.Next
	}
	if got.String() != want.String() {
		t.Error(cmp.Diff(want.String(), got.String()))
	}
	l.Close()
	if err := l.Remove(); err != nil {
		t.Error(err)
	}
	if left := files(t, root); left != nil {
		t.Errorf("removed, but %v is left", left)
	}
}

func TestRemovedLogIsGone(t *testing.T) {
	root := newRoot(t)
	l := spool.New(spool.Config{Root: root, Name: "o1", MemoryBytes: 10})
	write(t, l, cove.Stdout, strings.Repeat("x", 100))
	started, done := make(chan struct{}), make(chan error)
	go func() {
		var last error
		for c, err := range l.Follow(context.Background(), 0) {
			if last = err; c.Offset == 90 {
				close(started)
			}
		}
		done <- last
	}()
	<-started
	for range 2 {
		if err := l.Remove(); err != nil {
			t.Error(err)
		}
	}
	wantCode(t, <-done, cove.NotFound, "removed")
	_, err := l.Page(cove.OutputRange{})
	wantCode(t, err, cove.NotFound)
	wantCode(t, l.Persist(), cove.NotFound)
	write(t, l, cove.Stdout, "more")
	if stdout, _ := l.Summary(); stdout.Data != nil || stdout.Bytes != 100 {
		t.Errorf("got %+v", stdout)
	}
	for _, err := range l.Follow(t.Context(), 0) {
		wantCode(t, err, cove.NotFound)
	}
}

func TestLimitIsToldOnce(t *testing.T) {
	var told int
	l := spool.New(spool.Config{Limit: 10, OnLimit: func() { told++ }})
	write(t, l, cove.Stdout, "12345")
	write(t, l, cove.Stderr, "67890")
	if told != 0 || l.Exceeded() {
		t.Error("told at the limit, want beyond it")
	}
	write(t, l, cove.Stderr, "!")
	write(t, l, cove.Stderr, "!")
	if told != 1 || !l.Exceeded() {
		t.Errorf("told %d times, exceeded %t", told, l.Exceeded())
	}
	silent := spool.New(spool.Config{Limit: 1})
	write(t, silent, cove.Stdout, "12")
	if !silent.Exceeded() {
		t.Error("not exceeded")
	}
}

func TestChunksComeInOrderAndBelongToTheCallee(t *testing.T) {
	var chunks []cove.Chunk
	l := spool.New(spool.Config{MaxBytes: 100, OnChunk: func(c cove.Chunk) { chunks = append(chunks, c) }})
	var wg sync.WaitGroup
	for _, s := range []cove.Stream{cove.Stdout, cove.Stderr} {
		wg.Go(func() {
			buf := make([]byte, 8)
			for i := range 200 {
				copy(buf, fmt.Sprintf("%s %02d", s[:3], i))
				_, _ = l.Writer(s).Write(buf[:7])
			}
		})
	}
	wg.Wait()
	l.Close()
	var offset int64
	next := map[cove.Stream]int{}
	for _, c := range chunks {
		want := fmt.Sprintf("%s %02d", c.Stream[:3], next[c.Stream])
		if c.Offset != offset || string(c.Data) != (want + "\x00\x00")[:7] {
			t.Fatalf("at %d got %q at %d, want %q", offset, c.Data, c.Offset, want)
		}
		next[c.Stream]++
		offset += int64(len(c.Data))
	}
	if offset != l.Total() {
		t.Errorf("the chunks hold %d bytes of %d", offset, l.Total())
	}
}

func TestMuchOutputTakesLittleMemory(t *testing.T) {
	root := newRoot(t)
	l := spool.New(spool.Config{Root: root, Name: "o", MaxBytes: 4 * cove.MiB})
	buf := bytes.Repeat([]byte("0123456789abcde\n"), 2<<10)
	stdout, stderr := l.Writer(cove.Stdout), l.Writer(cove.Stderr)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 << 20 / len(buf) {
		_, _ = stdout.Write(buf[:len(buf)-1])
		_, _ = stderr.Write(buf[:1])
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("100 MiB of output took %d bytes of memory", got)
	}
	l.Close()
	info, err := root.Stat("o")
	if err != nil || info.Size() > 5<<20 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if l.Total() != 100<<20 || l.Dropped() != 96<<20 {
		t.Errorf("%d written, %d dropped", l.Total(), l.Dropped())
	}
}

// TestChangingStreamsWithEveryByte is what a program can do to make the books
// larger than the output.
func TestChangingStreamsWithEveryByte(t *testing.T) {
	root := newRoot(t)
	l := spool.New(spool.Config{Root: root, Name: "o", MemoryBytes: 4 << 10})
	const n = 50_000
	for range n {
		write(t, l, cove.Stderr, "e")
		write(t, l, cove.Stdout, "o")
	}
	l.Close()
	info, err := root.Stat("o")
	if err != nil || info.Size() > 4*n {
		t.Errorf("%d bytes made a file: %v, %v", 2*n, info, err)
	}
	chunks := follow(t, l, 0)
	if len(chunks) != 2*n || chunks[0].Stream != cove.Stderr || chunks[2*n-1].Stream != cove.Stdout {
		t.Errorf("got %d chunks", len(chunks))
	}
	if p := page(t, l, cove.OutputRange{Stream: cove.Stderr, Limit: 1 << 20}); string(p.Data) != strings.Repeat("e", n) {
		t.Errorf("got %d bytes of stderr", len(p.Data))
	}
}
