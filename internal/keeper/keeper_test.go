//go:build linux

package keeper_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/keeper"
)

func TestMain(m *testing.M) {
	if os.Args[0] == keeper.Name {
		os.Exit(keeper.Main(keeper.DefaultFD, os.Args[1]))
	}
	goleak.VerifyTestMain(m)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serve is a keeper in this process, and a client of it.
func serve(t *testing.T) (string, *keeper.Client) {
	t.Helper()
	dir := t.TempDir()
	stop, _, err := keeper.Serve(dir)
	must(t, err)
	t.Cleanup(stop)
	c, err := keeper.Connect(t.Context(), dir)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return dir, c
}

// pipe is one whose ends the test closes.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

func put(t *testing.T, c *keeper.Client, name string) {
	t.Helper()
	must(t, c.Put(t.Context(), name, keeper.Holding{Note: []byte("note")}))
}

func TestHolds(t *testing.T) {
	_, c := serve(t)
	ctx := t.Context()
	r, w := pipe(t)
	small := keeper.Holding{Note: []byte("one"), Files: map[string]int{"r": int(r.Fd()), "w": int(w.Fd())}}
	must(t, c.Put(ctx, "a", small))
	large := keeper.Holding{Note: bytes.Repeat([]byte("x"), 300<<10), Files: map[string]int{"r": int(r.Fd())}}
	must(t, c.Put(ctx, "b", large))
	names, err := c.List(ctx)
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" || err != nil {
		t.Errorf("listed: %v %s", err, diff)
	}
	for range 2 {
		got, err := c.Get(ctx, "b")
		must(t, err)
		if !bytes.Equal(got.Note, large.Note) || len(got.Files) != 1 {
			t.Errorf("%d bytes and %v", len(got.Note), got.Files)
		}
		got.Close()
	}
	must(t, c.Put(ctx, "a", keeper.Holding{Note: []byte("two"), Files: map[string]int{"w": int(w.Fd())}}))
	got, err := c.Get(ctx, "a")
	must(t, err)
	defer got.Close()
	if _, ok := got.Files["w"]; string(got.Note) != "two" || len(got.Files) != 1 || !ok {
		t.Errorf("after it was replaced: %+v", got)
	}
	if _, err := unix.Write(got.Files["w"], []byte("through")); err != nil {
		t.Error(err)
	}
	buf := make([]byte, 16)
	if n, err := r.Read(buf); err != nil || string(buf[:n]) != "through" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	must(t, c.Drop(ctx, "a"))
	must(t, c.Drop(ctx, "a"))
	if _, err := c.Get(ctx, "a"); !errors.Is(err, keeper.ErrUnknown) {
		t.Errorf("what was dropped gives %v", err)
	}
	if err := c.Put(ctx, "c", keeper.Holding{Note: make([]byte, keeper.MaxNote+1)}); err == nil {
		t.Error("a note without bounds is taken")
	}
	must(t, c.Drop(ctx, "b"))
}

// text is all that a program wrote, of each stream.
func text(t *testing.T, c *keeper.Client, program string) (out, errs string) {
	t.Helper()
	next := int64(0)
	for ch, err := range c.Follow(t.Context(), "box", program, 0) {
		must(t, err)
		if ch.Offset != next {
			t.Errorf("offset %d follows %d", ch.Offset, next)
		}
		next = ch.Offset + int64(len(ch.Data))
		if ch.Stream == cove.Stderr {
			errs += string(ch.Data)
		} else {
			out += string(ch.Data)
		}
	}
	return out, errs
}

func TestPrograms(t *testing.T) {
	_, c := serve(t)
	ctx := t.Context()
	put(t, c, "box")
	out, outW := pipe(t)
	errs, errsW := pipe(t)
	inR, in := pipe(t)
	must(t, c.Keep(ctx, "box", "p", []byte("about p"), keeper.Streams{In: int(in.Fd()), Out: int(out.Fd()), Err: int(errs.Fd())}))
	if err := c.Keep(ctx, "box", "p", nil, keeper.Streams{In: -1, Out: -1, Err: -1}); !errors.Is(err, keeper.ErrTaken) {
		t.Errorf("a name that is taken gives %v", err)
	}
	if err := c.Keep(ctx, "none", "p", nil, keeper.Streams{In: -1, Out: -1, Err: -1}); !errors.Is(err, keeper.ErrUnknown) {
		t.Errorf("a sandbox that is unknown gives %v", err)
	}
	_ = in.Close()
	_, _ = outW.WriteString("first ")
	_, _ = errsW.WriteString("wrong")
	names, err := c.Programs(ctx, "box")
	if diff := cmp.Diff([]string{"p"}, names); diff != "" || err != nil {
		t.Errorf("programs: %v %s", err, diff)
	}
	note, fd, err := c.Look(ctx, "box", "p")
	must(t, err)
	if string(note) != "about p" || fd < 0 {
		t.Errorf("%q, %d", note, fd)
	}
	_, _ = unix.Write(fd, []byte("typed"))
	_ = unix.Close(fd)
	must(t, c.Shut(ctx, "box", "p"))
	buf := make([]byte, 16)
	if n, err := inR.Read(buf); err != nil || string(buf[:n]) != "typed" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	if n, err := inR.Read(buf); n != 0 || err == nil {
		t.Errorf("the input is still open: %q", buf[:n])
	}
	if _, fd, err := c.Look(ctx, "box", "p"); err != nil || fd >= 0 {
		t.Errorf("after it was shut the input is %d, %v", fd, err)
	}
	_, _ = outW.WriteString("last")
	must(t, c.Finish(ctx, "box", "p"))
	// Others hold the pipe, and hold up nobody.
	gotOut, gotErrs := text(t, c, "p")
	if gotOut != "first last" || gotErrs != "wrong" {
		t.Errorf("it wrote %q and %q", gotOut, gotErrs)
	}
	must(t, c.Forget(ctx, "box", "p"))
	must(t, c.Forget(ctx, "box", "p"))
	must(t, c.Forget(ctx, "none", "p"))
	if _, _, err := c.Look(ctx, "box", "p"); !errors.Is(err, keeper.ErrUnknown) {
		t.Errorf("what is forgotten gives %v", err)
	}
	for _, err := range c.Follow(ctx, "box", "p", 0) {
		if !errors.Is(err, keeper.ErrUnknown) {
			t.Errorf("following it gives %v", err)
		}
	}
	if _, err := c.Programs(ctx, "none"); !errors.Is(err, keeper.ErrUnknown) {
		t.Errorf("the programs of nobody are %v", err)
	}
}

func TestFollowWhileItRuns(t *testing.T) {
	_, c := serve(t)
	put(t, c, "box")
	out, w := pipe(t)
	must(t, c.Keep(t.Context(), "box", "p", nil, keeper.Streams{In: -1, Out: int(out.Fd()), Err: -1}))
	_ = out.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, _ = w.WriteString("a")
	var last error
	for ch, err := range c.Follow(ctx, "box", "p", 0) {
		if last = err; err != nil {
			break
		}
		if string(ch.Data) != "a" {
			t.Errorf("it wrote %q", ch.Data)
		}
		cancel()
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("following ended with %v", last)
	}
	for _, err := range c.Follow(t.Context(), "box", "p", 2) {
		if err == nil {
			t.Error("an offset beyond the end is taken")
		}
	}
	// Forgotten while somebody follows: what he has is not complete.
	seen := false
	for _, err := range c.Follow(t.Context(), "box", "p", 0) {
		if err == nil {
			must(t, c.Forget(t.Context(), "box", "p"))
		}
		seen = seen || err != nil
	}
	if !seen {
		t.Error("what was forgotten has an end")
	}
	// Nobody reads any more.
	for err := error(nil); err == nil; {
		_, err = w.WriteString("b")
	}
}

// TestFlood is about more than is kept: who follows gets all of it, and for who
// comes later the offsets tell what is missing.
func TestFlood(t *testing.T) {
	_, c := serve(t)
	put(t, c, "box")
	out, w := pipe(t)
	must(t, c.Keep(t.Context(), "box", "p", nil, keeper.Streams{In: -1, Out: int(out.Fd()), Err: -1}))
	_ = out.Close()
	const lines = 3 << 20
	all := int64(0)
	ready := make(chan struct{})
	go func() {
		defer func() { _ = w.Close() }()
		<-ready
		line := []byte("0123456\n")
		block := bytes.Repeat(line, 4<<10)
		for range lines / (4 << 10) {
			_, _ = w.Write(block)
		}
	}()
	close(ready)
	for ch, err := range c.Follow(t.Context(), "box", "p", 0) {
		must(t, err)
		if ch.Offset != all {
			t.Fatalf("offset %d follows %d", ch.Offset, all)
		}
		all += int64(len(ch.Data))
	}
	if all != lines*8 {
		t.Errorf("%d of %d bytes came", all, lines*8)
	}
	got, next, gap, lost := int64(0), int64(0), int64(0), int64(0)
	for ch, err := range c.Follow(t.Context(), "box", "p", 0) {
		must(t, err)
		if len(ch.Data) == 0 {
			lost += ch.Offset
			continue
		}
		gap += ch.Offset - next
		next = ch.Offset + int64(len(ch.Data))
		got += int64(len(ch.Data))
		if want := "0123456\n"[ch.Offset%8]; ch.Data[0] != want {
			t.Fatalf("at %d is %q", ch.Offset, ch.Data[0])
		}
	}
	if next != lines*8 || got < keeper.KeptBytes || gap == 0 || got+gap != next || lost != gap {
		t.Errorf("later %d bytes came with a gap of %d, to %d", got, gap, next)
	}
}

// TestStalled is about one who follows and does not read: the program goes on.
func TestStalled(t *testing.T) {
	t.Cleanup(keeper.Hurry(5*time.Second, time.Second, time.Second, 10*time.Millisecond))
	_, c := serve(t)
	put(t, c, "box")
	out, w := pipe(t)
	must(t, c.Keep(t.Context(), "box", "p", nil, keeper.Streams{In: -1, Out: int(out.Fd()), Err: -1}))
	_ = out.Close()
	block := make([]byte, 64<<10)
	_, _ = w.Write(block)
	for _, err := range c.Follow(t.Context(), "box", "p", 0) {
		must(t, err)
		// He sits on the first chunk, and reads nothing more.
		for range 24 << 20 / len(block) {
			_, err := w.Write(block)
			must(t, err)
		}
		break
	}
	must(t, c.Finish(t.Context(), "box", "p"))
}

func TestManyPrograms(t *testing.T) {
	_, c := serve(t)
	put(t, c, "box")
	null := keeper.Streams{In: -1, Out: -1, Err: -1}
	for i := range keeper.MaxPrograms {
		s := null
		r, w, err := os.Pipe()
		must(t, err)
		s.Out = int(r.Fd())
		must(t, c.Keep(t.Context(), "box", fmt.Sprint("p", i), nil, s))
		_, _ = fmt.Fprint(w, i)
		_, _ = r.Close(), w.Close()
	}
	if err := c.Keep(t.Context(), "box", "more", nil, null); !errors.Is(err, keeper.ErrFull) {
		t.Errorf("one too many gives %v", err)
	}
	for i := range keeper.MaxPrograms {
		if out, _ := text(t, c, fmt.Sprint("p", i)); out != fmt.Sprint(i) {
			t.Errorf("program %d wrote %q", i, out)
		}
	}
	for i := range keeper.MaxSandbox - 1 {
		put(t, c, fmt.Sprint("s", i))
	}
	if err := c.Put(t.Context(), "more", keeper.Holding{}); !errors.Is(err, keeper.ErrFull) {
		t.Errorf("one too many gives %v", err)
	}
	if names, err := c.List(t.Context()); err != nil || len(names) != keeper.MaxSandbox {
		t.Errorf("%d are listed, %v", len(names), err)
	}
	must(t, c.Drop(t.Context(), "box"))
}

func TestManyFollowers(t *testing.T) {
	_, c := serve(t)
	put(t, c, "box")
	out, w := pipe(t)
	must(t, c.Keep(t.Context(), "box", "p", nil, keeper.Streams{In: -1, Out: int(out.Fd()), Err: -1}))
	_, _ = w.WriteString("x")
	var follow func(n int) error
	follow = func(n int) error {
		for _, err := range c.Follow(t.Context(), "box", "p", 0) {
			if err != nil || n == 0 {
				return err
			}
			return follow(n - 1)
		}
		return nil
	}
	if err := follow(keeper.MaxFollow - 1); err != nil {
		t.Error(err)
	}
	if err := follow(keeper.MaxFollow); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("one too many gives %v", err)
	}
}

func TestFarewell(t *testing.T) {
	dir, c := serve(t)
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	must(t, c.Put(t.Context(), "box", keeper.Holding{Farewell: []byte("bye"), Files: map[string]int{"link": fds[0]}}))
	_ = unix.Close(fds[0])
	must(t, c.Close())
	buf := make([]byte, 16)
	if n, err := unix.Read(fds[1], buf); err != nil || string(buf[:n]) != "bye" {
		t.Errorf("the link got %q, %v", buf[:n], err)
	}
	_ = unix.Close(fds[1])
	again, err := keeper.Connect(t.Context(), dir)
	must(t, err)
	must(t, again.Drop(t.Context(), "box"))
	must(t, again.Close())
	if _, err := c.List(t.Context()); !errors.Is(err, keeper.ErrGone) {
		t.Errorf("a client that is closed says %v", err)
	}
}

// TestLongPath is about a directory whose name no socket could have.
func TestLongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 200))
	must(t, os.Mkdir(dir, 0o700))
	stop, _, err := keeper.Serve(dir)
	must(t, err)
	defer stop()
	c, err := keeper.Connect(t.Context(), dir)
	must(t, err)
	must(t, c.Close())
}
