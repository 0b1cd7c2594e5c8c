//go:build linux

package gvisor_test

import (
	"context"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// counting is a program that counts in its memory alone: what it has counted is
// only in the file that it writes each number to.
const counting = `i=1000; while :; do i=$((i+1)); echo $i > count.new; mv count.new count; sleep 0.02; done`

// count waits until a sandbox has counted beyond a number, and returns how far.
func count(t *testing.T, s cove.Sandbox, beyond int) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if r, err := s.Files().Read(ctx, "count", 0, 0); err == nil {
			text, err := io.ReadAll(r)
			_ = r.Close()
			if n, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil && n > beyond {
				return n
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("nobody counts beyond %d", beyond)
		}
	}
}

func create(t *testing.T, p cove.Provider, spec cove.Spec) cove.Sandbox {
	t.Helper()
	s, err := p.Create(t.Context(), cove.NewID(), spec)
	if err != nil {
		t.Fatal(err)
	}
	destroyLater(t, s)
	return s
}

func destroyLater(t *testing.T, s cove.Sandbox) {
	t.Helper()
	t.Cleanup(func() {
		if err := s.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

func closeLater(t *testing.T, p cove.Provider) cove.Provider {
	t.Helper()
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestSnapshotHasMemory: a program that counts in its memory goes on in what is made
// from a snapshot and in a fork, from where it was and apart from the first.
func TestSnapshotHasMemory(t *testing.T) {
	p := closeLater(t, open(t))
	s := create(t, p, cove.Spec{})
	if _, err := s.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", counting}, Keep: "p1"}); err != nil {
		t.Fatal(err)
	}
	before := count(t, s, 1002)
	snap, _ := cove.As[cove.Snapshotter](s)
	name := cove.NewID()
	if _, err := snap.Snapshot(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	count(t, s, before) // it goes on where it was
	fork, _ := cove.As[cove.Forker](s)
	twin, err := fork.Fork(t.Context(), cove.NewID(), cove.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	destroyLater(t, twin)
	if err := s.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	count(t, twin, count(t, twin, before))
	copied := create(t, p, cove.Spec{Snapshot: name})
	count(t, copied, count(t, copied, before))
	// The names of programs are those of whoever has the copy.
	again, err := copied.Start(t.Context(), cove.Command{Argv: []string{"true"}, Keep: "p1"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := again.Wait(t.Context()); err != nil || r.ExitCode != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	// With another room for files nothing can go on, and the files are there.
	other := create(t, p, cove.Spec{Snapshot: name, Workspace: cove.Workspace{Size: 32 * cove.MiB}})
	if n := count(t, other, 1000); n < before {
		t.Errorf("the file says %d", n)
	}
	if err := p.(cove.SnapshotKeeper).RemoveSnapshot(t.Context(), name); err != nil {
		t.Error(err)
	}
}
