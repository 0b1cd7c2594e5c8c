//go:build linux

package fence_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

func TestJobRoundTrip(t *testing.T) {
	want := fence.Job{
		Kind: fence.JobChanges, Owner: 7, Name: "2", To: "3", Bounds: fence.Bounds{Size: 1, Files: 2}, Slack: 3, Bare: true,
		Stack: fence.Stack{Upper: "1", Lower: []fence.Layer{{Name: "0", Owner: 8}, {Name: "x"}}},
	}
	got, err := fence.JobRoundTrip(want)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-sent +received):\n%s", err, d)
	}
	want.Name = strings.Repeat("x", 65)
	if _, err := fence.JobRoundTrip(want); err == nil {
		t.Error("a long name got through")
	}
}

// tools are what jobs are done with here.
func tools(t *testing.T) fence.Tools {
	t.Helper()
	linuxtest.NeedRoot(t)
	_, proc := opened(t)
	return fence.Tools{Proc: proc, Become: true}
}

func TestJobsRefused(t *testing.T) {
	tool := tools(t)
	for name, j := range map[string]fence.Job{
		"none":   {},
		"beyond": {Kind: 99},
		"files":  {Kind: fence.JobErase, Name: "x"},
		"upward": {Kind: fence.JobStore, To: ".."},
		"slash":  {Kind: fence.JobStore, To: "a/b"},
		"many":   {Kind: fence.JobShow, Stack: fence.Stack{Lower: make([]fence.Layer, 13)}},
	} {
		if _, err := tool.Do(j, nil); !errors.Is(err, protocol.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := tool.Do(fence.Job{Kind: fence.JobStore, To: "0"}, nil); err == nil {
		t.Error("a store without bounds was made")
	}
}

// A sandbox whose workspace cannot be replaced is told of, and can be mended.
func TestTorn(t *testing.T) {
	builders(t, func(t *testing.T, kind string) {
		p := newPlan(t.TempDir())
		p.Layers = true
		b, err := open(t, kind, p)
		if err != nil {
			t.Fatal(err)
		}
		s := build(t, b, anyOrder)
		t.Cleanup(func() { _, _ = unix.Close(s.Store), unix.Close(s.Namespace) })
		if kind != "direct" && !root() {
			return // what follows is done by the host
		}
		tool := tools(t)
		bad := tool
		bad.Proc = -1
		if got, _ := s.run(t, "echo x > f; cat f"); got != "x\n" {
			t.Fatalf("it says %q", got)
		}
		j := fence.Job{Kind: fence.JobShow, Owner: anyOrder.Outside, Stack: fence.Stack{Upper: "1", Lower: []fence.Layer{{Name: "0", Owner: anyOrder.Outside}}}}
		_, err = bad.Do(j, []int{s.Namespace, s.Store, s.Store})
		if why, torn := fence.Torn(err); !torn || !strings.Contains(why, "bad file") {
			t.Errorf("without a /proc: %v", err)
		}
		if got, _ := s.run(t, "cat /workspace/f"); strings.HasPrefix(got, "x") {
			t.Errorf("it still has %q", got)
		}
		j.Bare = true
		if _, err := tool.Do(j, []int{s.Namespace, s.Store, s.Store}); err != nil {
			t.Fatal(err)
		}
		if got, _ := s.run(t, "cat /workspace/f; echo y > /workspace/f; cat /workspace/f"); got != "x\ny\n" {
			t.Errorf("mended it says %q", got)
		}
		if _, torn := fence.Torn(nil); torn {
			t.Error("nothing is torn")
		}
	})
}

// directory opens one.
func directory(t *testing.T, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// A tree that was cut short or damaged anywhere is refused, and nothing is made
// outside of its directory.
func TestDamagedTrees(t *testing.T) {
	from := t.TempDir()
	for _, err := range []error{
		os.Mkdir(filepath.Join(from, "d"), 0o750), os.WriteFile(filepath.Join(from, "d", "f"), []byte("text"), 0o640),
		os.Link(filepath.Join(from, "d", "f"), filepath.Join(from, "same")), os.Symlink("to", filepath.Join(from, "link")),
		unix.Mkfifo(filepath.Join(from, "fifo"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var whole bytes.Buffer
	n, err := fence.Pack(directory(t, from), &whole)
	if err != nil || n != 4 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if err := fence.Unpack(bytes.NewReader(whole.Bytes()), directory(t, t.TempDir()), -1); err != nil {
		t.Fatal(err)
	}
	for cut := range whole.Len() {
		if err := fence.Unpack(bytes.NewReader(whole.Bytes()[:cut]), directory(t, t.TempDir()), -1); err == nil {
			t.Fatalf("the first %d of %d bytes are a tree", cut, whole.Len())
		}
	}
	top := fence.EncodeEntry(".", "", "", unix.S_IFDIR|0o755)
	link := fence.EncodeEntry("l", "", "/", unix.S_IFLNK)
	for name, b := range map[string][]byte{
		"upward":         fence.EncodeEntry("../x", "", "", unix.S_IFIFO),
		"absolute":       fence.EncodeEntry("/tmp/x", "", "", unix.S_IFIFO),
		"through a link": append(link, fence.EncodeEntry("l/cove-was-here", "", "", unix.S_IFIFO)...),
		"linked upward":  fence.EncodeEntry("x", "../x", "", unix.S_IFREG),
		"linked nowhere": fence.EncodeEntry("x", "y", "", unix.S_IFREG),
		"no kind":        fence.EncodeEntry("x", "", "", 0),
		"twice":          append(link, link...),
		"long":           fence.EncodeEntry(strings.Repeat("x", fence.Longest+1), "", "", unix.S_IFIFO),
		"garbage":        {3, 1, 2, 3},
		"huge":           {0xff, 0xff, 0xff, 0xff, 0x7f},
	} {
		tree := append(append([]byte(fence.Magic), top...), b...)
		if err := fence.Unpack(bytes.NewReader(append(tree, 0, 9)), directory(t, t.TempDir()), -1); err == nil {
			t.Errorf("%s: it was made", name)
		}
	}
	if _, err := os.Lstat("/cove-was-here"); err == nil {
		t.Error("a file was made outside")
	}
	if _, err := fence.Pack(directory(t, from), full{}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a full disk: %v", err)
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, unix.ENOSPC }

func TestBadChanges(t *testing.T) {
	for name, text := range map[string]string{"cut": "\x05abc", "garbage": "\x03abc", "huge": "\xff\xff\xff\xff\x7f"} {
		if _, err := fence.ReadChange(bufio.NewReader(strings.NewReader(text))); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
