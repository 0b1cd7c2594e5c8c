//go:build linux

package warden_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/gvisor/warden"
)

// played returns a warden that is this test.
func played(t *testing.T) *warden.Warden {
	t.Helper()
	noLeaks(t)
	w := warden.New("/proc/self/exe", "--root=/nowhere")
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// nothing are streams of a program that has none.
func nothing(t *testing.T) warden.Streams {
	t.Helper()
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return warden.Streams{In: f, Out: f, Err: f}
}

func TestCalls(t *testing.T) {
	w := played(t)
	ctx := t.Context()
	calls := map[string]func(id string) error{
		"enter": func(id string) error {
			return w.Enter(ctx, id, warden.Program{Argv: []string{"true"}}, nothing(t))
		},
		"pause":      func(id string) error { return w.Pause(ctx, id) },
		"resume":     func(id string) error { return w.Resume(ctx, id) },
		"checkpoint": func(id string) error { return w.Checkpoint(ctx, id, "image") },
		"remove":     func(id string) error { return w.Remove(ctx, id) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			if err := call("fine"); err != nil {
				t.Error(err)
			}
			if err := call("gone"); cove.CodeOf(err) != cove.NotFound {
				t.Errorf("a sandbox that is not there: %v", err)
			}
			err := call("broken")
			if cove.CodeOf(err) != cove.Unavailable || !strings.Contains(cove.MessageOf(err), name) || strings.Contains(cove.MessageOf(err), "broken") {
				t.Errorf("a sandbox that is broken: %v", err)
			}
			if cause := errors.Unwrap(err); cause == nil || !strings.HasPrefix(cause.Error(), "it is broken") || len(cause.Error()) > 4096 {
				t.Errorf("the cause is %v", cause)
			}
		})
	}
}

// What went wrong is the last that gVisor says, after all that it was about.
func TestBrief(t *testing.T) {
	long := "checkpointing: " + strings.Repeat("0x0, ü", 10_000) + ": no space left on device\ngoroutine 1:\n" + strings.Repeat("main()\n", 1000)
	got := warden.Brief(long)
	if len(got) > 4<<10 || !strings.HasPrefix(got, "checkpointing: ") || !strings.HasSuffix(got, "no space left on device") || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if short := "no such sandbox"; warden.Brief(short) != short {
		t.Errorf("%q", warden.Brief(short))
	}
}

func TestStreams(t *testing.T) {
	w := played(t)
	in, toIn, _ := os.Pipe()
	fromOut, out, _ := os.Pipe()
	fromErrs, errs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer closeFiles(in, fromOut, fromErrs)
	if _, err := toIn.WriteString("input"); err != nil {
		t.Fatal(err)
	}
	_ = toIn.Close()
	program := warden.Program{Argv: []string{"a", "b"}, Env: []string{"C=d"}, Admin: true}
	if err := w.Enter(t.Context(), "box", program, warden.Streams{In: in, Out: out, Err: errs}); err != nil {
		t.Fatal(err)
	}
	closeFiles(out, errs)
	said, _ := io.ReadAll(fromOut)
	complained, _ := io.ReadAll(fromErrs)
	if string(said) != "box [a b] [C=d] true input" || string(complained) != "errors" {
		t.Errorf("it said %q and %q", said, complained)
	}
}

func closeFiles(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// TestOneHangs: who waits for a sandbox that does not answer waits alone.
func TestOneHangs(t *testing.T) {
	w := played(t)
	var wg sync.WaitGroup
	defer wg.Wait()
	for range 8 {
		wg.Go(func() {
			if err := w.Pause(t.Context(), "hang"); cove.CodeOf(err) != cove.Unavailable {
				t.Errorf("the call ended with %v", err)
			}
		})
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := w.Pause(short, "hang-too"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that is given up: %v", err)
	}
	if err := w.Pause(t.Context(), "fine"); err != nil {
		t.Errorf("another sandbox: %v", err)
	}
	// The calls above are on their way, and how many came first is not known.
	for err := error(nil); err == nil || !strings.Contains(errors.Unwrap(err).Error(), "too many"); {
		once, cancel := context.WithTimeout(t.Context(), time.Second)
		err = w.Resume(once, "hang")
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
	}
	if err := errors.Join(w.Remove(t.Context(), "hang"), w.Remove(t.Context(), "hang-too")); err != nil {
		t.Errorf("it cannot be removed: %v", err)
	}
}

// TestItEnds: calls end with their warden, which is started anew for the next.
func TestItEnds(t *testing.T) {
	for id, cause := range map[string]string{"crash": "out of luck", "garbage": "ended"} {
		t.Run(id, func(t *testing.T) {
			w := played(t)
			err := w.Pause(t.Context(), id)
			if cove.CodeOf(err) != cove.Unavailable || cove.RemedyOf(err) == "" {
				t.Fatalf("it ended with %v", err)
			}
			if got := errors.Unwrap(err).Error(); !strings.Contains(got, cause) {
				t.Errorf("the cause is %q", got)
			}
			if err := w.Pause(t.Context(), "fine"); err != nil {
				t.Errorf("the next: %v", err)
			}
		})
	}
}

func TestItCannotStart(t *testing.T) {
	noLeaks(t)
	w := warden.New("/nowhere/cove-gvisor")
	err := w.Remove(t.Context(), "box")
	if cove.CodeOf(err) != cove.Unavailable || !strings.Contains(cove.RemedyOf(err), "/nowhere/cove-gvisor") {
		t.Errorf("%v, %q", err, cove.RemedyOf(err))
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestClosed(t *testing.T) {
	w := played(t)
	if err := w.Pause(t.Context(), "fine"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.Pause(t.Context(), "hang"); cove.CodeOf(err) != cove.Unavailable {
			t.Errorf("a call in the middle: %v", err)
		}
	})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if err := w.Pause(t.Context(), "fine"); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("a call after its end: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Pause(over, "fine"); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that nobody waits for: %v", err)
	}
}

func TestTooLong(t *testing.T) {
	w := played(t)
	program := warden.Program{Argv: []string{strings.Repeat("x", 64<<10)}}
	if err := w.Enter(t.Context(), "box", program, nothing(t)); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("a program of 64 KiB: %v", err)
	}
	if err := w.Pause(t.Context(), "fine"); err != nil {
		t.Errorf("the next: %v", err)
	}
}
