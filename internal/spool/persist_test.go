package spool_test

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/spool"
)

func TestPersistAndOpen(t *testing.T) {
	root := newRoot(t)
	l := spool.New(spool.Config{Root: root, Name: "o", Limit: 1})
	write(t, l, cove.Stdout, "hello\n")
	write(t, l, cove.Stderr, "oops\n")
	wantCode(t, l.Persist(), cove.Conflict, "still being written")
	l.Close()
	wantOut, wantErr := l.Summary()
	want := follow(t, l, 0)
	if err := l.Persist(); err != nil {
		t.Fatal(err)
	}
	again, err := spool.Open(root, "o")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*spool.Log{l, again} {
		gotOut, gotErr := l.Summary()
		if !cmp.Equal(wantOut, gotOut) || !cmp.Equal(wantErr, gotErr) {
			t.Errorf("got %+v and %+v", gotOut, gotErr)
		}
		gotOut.Data[0] = 'X' // the caller's own copy
		if d := cmp.Diff(want, follow(t, l, 0)); d != "" {
			t.Error(d)
		}
		if p := page(t, l, cove.OutputRange{Stream: cove.Stderr}); string(p.Data) != "oops\n" {
			t.Errorf("got %+v", p)
		}
		write(t, l, cove.Stdout, "too late")
		if l.Total() != 11 || l.Err() != nil {
			t.Errorf("got %d bytes, %v", l.Total(), l.Err())
		}
	}
	if err := again.Persist(); err != nil {
		t.Error(err)
	}
	again.Close()
	if err := again.Remove(); err != nil {
		t.Error(err)
	}
	if left := files(t, root); left != nil {
		t.Errorf("removed, but %v is left", left)
	}
}

func TestPersistOfNothing(t *testing.T) {
	root := newRoot(t)
	l := spool.New(spool.Config{Root: root, Name: "o"})
	l.Close()
	if err := l.Persist(); err != nil {
		t.Fatal(err)
	}
	again, err := spool.Open(root, "o")
	if err != nil || again.Total() != 0 || follow(t, again, 0) != nil {
		t.Errorf("got %v", err)
	}
}

func TestOpenRefusesWhatIsNotThere(t *testing.T) {
	root := newRoot(t)
	_, err := spool.Open(root, "none")
	wantCode(t, err, cove.NotFound, "gone")
	_, err = spool.Open(root, "../none")
	wantCode(t, err, cove.Invalid, "not the name")
	if err := os.Symlink("/etc/passwd", root.Name()+"/link"); err != nil {
		t.Fatal(err)
	}
	_, err = spool.Open(root, "link")
	wantCode(t, err, cove.Unavailable)

	// A file that was spilled but never persisted is of no use.
	l := spool.New(spool.Config{Root: root, Name: "o", MemoryBytes: 10})
	write(t, l, cove.Stdout, strings.Repeat("x", 100))
	l.Close()
	_, err = spool.Open(root, "o")
	wantCode(t, err, cove.Unavailable, "damaged")
}

// withFooter makes a file of data and a footer that is right but for its text.
func withFooter(data, text string) []byte {
	b := append([]byte(data), text...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE([]byte(text)))
	return append(b, "covespl1"...)
}

func TestDamagedFilesAreRefused(t *testing.T) {
	root := newRoot(t)
	for name, data := range map[string][]byte{
		"empty":                  nil,
		"short":                  []byte("covespl1"),
		"no magic":               []byte(strings.Repeat("x", 100)),
		"length beyond the file": append([]byte{255, 255, 0, 0, 0, 0, 0, 0}, "covespl1"...),
		"wrong sum":              append([]byte("{}\x02\x00\x00\x00abcd"), "covespl1"...),
		"not JSON":               withFooter("", "{"),
		"more kept than written": withFooter("", `{"total":[1,0],"kept":[2,0]}`),
		"negative":               withFooter("", `{"total":[1,0],"kept":[-1,0]}`),
		"a block beyond the end": withFooter("abc", `{"total":[4,0],"kept":[4,0],"blocks":[[0,0,0,0,4]]}`),
		"runs beyond the end":    withFooter("abc", `{"total":[3,0],"kept":[3,0],"blocks":[[0,0,0,4,3]]}`),
		"a negative block":       withFooter("abc", `{"total":[3,0],"kept":[3,0],"blocks":[[0,0,-1,0,3]]}`),
		"an empty block":         withFooter("abc", `{"total":[3,0],"kept":[3,0],"blocks":[[0,0,0,0,0]]}`),
		"blocks that overlap":    withFooter("abcd", `{"total":[4,0],"kept":[4,0],"blocks":[[0,0,0,0,2],[1,0,2,0,2]]}`),
		"more than was written":  withFooter("abc", `{"total":[2,0],"kept":[2,0],"blocks":[[0,0,0,0,3]]}`),
	} {
		if err := root.WriteFile("o", data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := spool.Open(root, "o")
		if cove.CodeOf(err) != cove.Unavailable || !strings.Contains(cove.MessageOf(err), "damaged") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDamagedBlocksAreRefused(t *testing.T) {
	root := newRoot(t)
	for name, data := range map[string][]byte{
		"a run longer than the block": withFooter("\x09abc", `{"total":[3,0],"kept":[3,0],"blocks":[[0,0,0,1,3]]}`),
		"a run without an end":        withFooter("\xffabc", `{"total":[3,0],"kept":[3,0],"blocks":[[0,0,0,1,3]]}`),
		"not the stream it should be": withFooter("\x00abc", `{"total":[3,0],"kept":[3,0],"blocks":[[0,0,0,1,3]]}`),
		"no block at the beginning":   withFooter("abc", `{"total":[5,0],"kept":[5,0],"blocks":[[2,2,0,0,3]]}`),
	} {
		if err := root.WriteFile("o", data, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := spool.Open(root, "o")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := l.Page(cove.OutputRange{Stream: cove.Stdout}); cove.CodeOf(err) != cove.Unavailable {
			t.Errorf("%s: got %v", name, err)
		}
		for _, err := range l.Follow(t.Context(), 0) {
			if err != nil && cove.CodeOf(err) != cove.Unavailable {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add("abc", `{"total":[3,0],"kept":[3,0],"blocks":[[0,0,0,0,3]]}`)
	f.Add("\x02abc", `{"total":[2,1],"kept":[2,1],"blocks":[[0,0,0,1,3]]}`)
	f.Add("\x00\x01abc", `{"total":[2,1],"kept":[2,1],"blocks":[[0,0,0,2,3]]}`)
	f.Add("abcdef", `{"total":[3,6],"kept":[3,0],"blocks":[[0,0,0,0,3],[6,3,3,0,3]]}`)
	f.Fuzz(func(t *testing.T, data, text string) {
		root := newRoot(t)
		if err := root.WriteFile("o", withFooter(data, text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := spool.Open(root, "o")
		if err != nil {
			return
		}
		l.Summary()
		for _, s := range []cove.Stream{"", cove.Stdout, cove.Stderr} {
			for _, grep := range []string{"", "a"} {
				if p, err := l.Page(cove.OutputRange{Stream: s, Grep: grep}); err == nil && len(p.Data) > len(data)+1 {
					t.Errorf("%d bytes gave a page of %d", len(data), len(p.Data))
				}
			}
		}
		var end int64
		for c, err := range l.Follow(t.Context(), 0) {
			if err == nil && c.Offset < end {
				t.Fatalf("chunk at %d after one that ends at %d", c.Offset, end)
			}
			end = c.Offset + int64(len(c.Data))
		}
	})
}
