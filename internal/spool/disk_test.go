package spool_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/spool"
)

// disk is a file that fails after a number of bytes.
type disk struct {
	spool.File

	left *int
}

func (d *disk) WriteAt(p []byte, off int64) (int, error) {
	if len(p) > *d.left {
		n, _ := d.File.WriteAt(p[:*d.left], off)
		return n, syscall.ENOSPC
	}
	*d.left -= len(p)
	return d.File.WriteAt(p, off)
}

func TestFullDiskStopsTheKeepingAndNothingElse(t *testing.T) {
	root := newRoot(t)
	l := spool.New(spool.Config{Root: root, Name: "o", MemoryBytes: 100})
	left := 250
	l.WrapFile(func(f spool.File) spool.File { return &disk{File: f, left: &left} })
	var all strings.Builder
	for i := range 100 {
		line := fmt.Sprintf("line %04d\n", i)
		all.WriteString(line)
		write(t, l, cove.Stdout, line)
	}
	l.Close()
	wantCode(t, l.Err(), cove.Unavailable, "first 300 bytes", "no space left")
	p := page(t, l, cove.OutputRange{})
	if string(p.Data) != all.String()[:300] || p.Total != 300 || p.Dropped != 700 || p.Next != -1 {
		t.Errorf("got %+v", p)
	}
	if stdout, _ := l.Summary(); string(stdout.Data) != all.String() {
		t.Errorf("the summary was cut to %d bytes", len(stdout.Data))
	}
	chunks := follow(t, l, 0)
	if last := chunks[len(chunks)-1]; last.Offset+int64(len(last.Data)) != 1000 {
		t.Errorf("the last chunk is at %d", last.Offset)
	}
	wantCode(t, l.Persist(), cove.Unavailable, "no space left")
	if got := page(t, l, cove.OutputRange{}); !cmp.Equal(p, got) {
		t.Errorf("after Persist failed: %s", cmp.Diff(p, got))
	}
	info, err := root.Stat("o")
	if err != nil || info.Size() != 200 {
		t.Errorf("what could not be used was not given back: %v, %v", info, err)
	}
	left = 1 << 20 // somebody made room
	if err := l.Persist(); err != nil {
		t.Fatal(err)
	}
	again, err := spool.Open(root, "o")
	if err != nil {
		t.Fatal(err)
	}
	if got := page(t, again, cove.OutputRange{}); !cmp.Equal(p, got) {
		t.Error(cmp.Diff(p, got))
	}
	wantCode(t, again.Err(), cove.Unavailable, "first 300 bytes")
}

func TestFooterThatDoesNotFitIsTakenBack(t *testing.T) {
	root := newRoot(t)
	l := spool.New(spool.Config{Root: root, Name: "o"})
	left := 10
	l.WrapFile(func(f spool.File) spool.File { return &disk{File: f, left: &left} })
	write(t, l, cove.Stdout, "12345")
	l.Close()
	wantCode(t, l.Persist(), cove.Unavailable, "no space left")
	left = 1 << 20
	if err := l.Persist(); err != nil {
		t.Fatal(err)
	}
	again, err := spool.Open(root, "o")
	if err != nil {
		t.Fatal(err)
	}
	if p := page(t, again, cove.OutputRange{}); string(p.Data) != "12345" {
		t.Errorf("got %+v", p)
	}
}

func TestBadPlacesAreSaid(t *testing.T) {
	root := newRoot(t)
	if err := root.WriteFile("taken", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{
		"taken": "file exists", "": "not the name", "../x": "not the name", "a/b": "not the name",
		".hidden": "not the name", strings.Repeat("x", 129): "not the name", "a\x00b": "not the name",
	} {
		l := spool.New(spool.Config{Root: root, Name: name, MemoryBytes: 1})
		write(t, l, cove.Stdout, "123")
		l.Close()
		wantCode(t, l.Err(), cove.Unavailable, says)
		wantCode(t, l.Persist(), cove.Unavailable, says)
		if stdout, _ := l.Summary(); string(stdout.Data) != "123" {
			t.Errorf("%q: got %+v", name, stdout)
		}
		if err := l.Remove(); err != nil {
			t.Error(err)
		}
	}
	if got := files(t, root); !cmp.Equal(got, []string{"taken"}) {
		t.Errorf("got %v", got)
	}
}

func TestFileThatVanishesIsSaid(t *testing.T) {
	root := newRoot(t)
	l := spool.New(spool.Config{Root: root, Name: "o", MemoryBytes: 10})
	write(t, l, cove.Stdout, strings.Repeat("x", 25))
	l.Close()
	if err := os.Truncate(filepath.Join(root.Name(), "o"), 5); err != nil {
		t.Fatal(err)
	}
	_, err := l.Page(cove.OutputRange{})
	wantCode(t, err, cove.Unavailable, "damaged")
	if err := root.Remove("o"); err != nil {
		t.Fatal(err)
	}
	_, err = l.Page(cove.OutputRange{})
	wantCode(t, err, cove.NotFound, "gone")
	for _, err := range l.Follow(t.Context(), 0) {
		wantCode(t, err, cove.NotFound, "gone")
	}
	if err := l.Remove(); err != nil {
		t.Errorf("removing what is gone: %v", err)
	}
}

func TestRemoveSaysWhenItCannot(t *testing.T) {
	root := newRoot(t)
	l := spool.New(spool.Config{Root: root, Name: "o", MemoryBytes: 1})
	write(t, l, cove.Stdout, "123")
	l.Close()
	if err := root.Remove("o"); err != nil {
		t.Fatal(err)
	}
	if err := root.MkdirAll("o/full", 0o700); err != nil {
		t.Fatal(err)
	}
	wantCode(t, l.Remove(), cove.Unavailable, "cannot be removed")
}

// TestResize: the file is no larger than what was asked for, a refusal ends the keeping
// and nothing else, and the end is asked for, too.
func TestResize(t *testing.T) {
	for name, most := range map[string]int64{"enough": 1 << 20, "less": 250} {
		t.Run(name, func(t *testing.T) {
			root := newRoot(t)
			var asked int64
			l := spool.New(spool.Config{Root: root, Name: "o", MemoryBytes: 100, Resize: func(size int64, must bool) error {
				if size > most && !must {
					return cove.Errorf(cove.Exhausted, "no room")
				}
				asked = size
				return nil
			}})
			same := func() {
				t.Helper()
				if info, err := root.Stat("o"); err != nil || info.Size() != asked {
					t.Errorf("asked for %d bytes, the file is %v, %v", asked, info, err)
				}
			}
			text := strings.Repeat("0123456789", 100)
			write(t, l, cove.Stdout, text)
			same()
			l.Close()
			if most < 1000 {
				wantCode(t, l.Err(), cove.Unavailable, "first 300 bytes", "no room")
				if p := page(t, l, cove.OutputRange{}); p.Total != 300 || p.Dropped != 700 {
					t.Errorf("%+v", p)
				}
			}
			if err := l.Persist(); err != nil {
				t.Fatal(err)
			}
			same()
			if stdout, _ := l.Summary(); string(stdout.Data) != text {
				t.Errorf("the summary has %d bytes", len(stdout.Data))
			}
			if err := l.Remove(); err != nil || asked != 0 {
				t.Errorf("after it was removed %d bytes are asked for, %v", asked, err)
			}
		})
	}
}

// TestResizeIsTakenBack where the disk is full.
func TestResizeIsTakenBack(t *testing.T) {
	var asked int64
	root := newRoot(t)
	l := spool.New(spool.Config{Root: root, Name: "o", MemoryBytes: 100, Resize: func(size int64, _ bool) error {
		asked = size
		return nil
	}})
	left := 150
	l.WrapFile(func(f spool.File) spool.File { return &disk{File: f, left: &left} })
	write(t, l, cove.Stdout, strings.Repeat("x", 1000))
	l.Close()
	if asked != 100 {
		t.Errorf("%d bytes are asked for after the disk was full", asked)
	}
	if err := l.Persist(); err == nil || asked != 100 {
		t.Errorf("%d bytes are asked for after Persist failed with %v", asked, err)
	}
}
