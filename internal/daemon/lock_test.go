package daemon_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

func newHome(t *testing.T) daemon.Home {
	t.Helper()
	h, err := daemon.OpenHome(filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestOneServerForEachHome(t *testing.T) {
	h := newHome(t)
	if _, served, err := h.WhoServes(); served || err != nil {
		t.Fatalf("a fresh home is served: %v", err)
	}
	first := daemon.Holder{PID: 42, Address: "http://127.0.0.1:8000", Version: "v1", Started: time.Unix(1, 0).UTC()}
	free, err := h.TakeHome(t.Context(), 0, first)
	if err != nil {
		t.Fatal(err)
	}
	who, served, err := h.WhoServes()
	if diff := cmp.Diff(first, who); diff != "" || !served || err != nil {
		t.Errorf("served %v, %v: %s", served, err, diff)
	}

	_, err = h.TakeHome(t.Context(), 0, daemon.Holder{})
	e, _ := errors.AsType[*cove.Error](err)
	if cove.CodeOf(err) != cove.Conflict || !strings.Contains(e.Message, "is served by process 42 at http://127.0.0.1:8000 already") {
		t.Errorf("a second server: %v", err)
	}
	if e.Details["pid"] != 42 || e.Details["address"] != first.Address || cove.RemedyOf(err) == "" {
		t.Errorf("details: %v", e.Details)
	}

	if err := free(); err != nil {
		t.Fatal(err)
	}
	if _, served, _ := h.WhoServes(); served {
		t.Error("served after the end")
	}
}

func TestServerWaitsForItsPredecessor(t *testing.T) {
	h := newHome(t)
	free, err := h.TakeHome(t.Context(), 0, daemon.Holder{PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan error, 1)
	go func() {
		again, err := h.TakeHome(t.Context(), time.Minute, daemon.Holder{PID: 2})
		if err == nil {
			err = again()
		}
		taken <- err
	}()
	if err := free(); err != nil {
		t.Fatal(err)
	}
	if err := <-taken; err != nil {
		t.Error(err)
	}

	free, err = h.TakeHome(t.Context(), 0, daemon.Holder{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = free() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.TakeHome(ctx, time.Minute, daemon.Holder{}); cove.CodeOf(err) != cove.Conflict || !strings.Contains(err.Error(), "just starting") {
		t.Errorf("an interrupted wait: %v", err)
	}
}

func TestLanesAreTakenInTurn(t *testing.T) {
	h := newHome(t)
	take := func(want int) func(bool) error {
		t.Helper()
		n, giveBack, err := h.TakeLane()
		if err != nil || n != want {
			t.Fatalf("lane %d, %v; want %d", n, err, want)
		}
		return giveBack
	}
	give := func(giveBack func(bool) error, clean bool) {
		t.Helper()
		if err := giveBack(clean); err != nil {
			t.Fatal(err)
		}
	}
	zero, one, two := take(0), take(1), take(2)
	give(two, false) // as if it had been killed
	give(zero, true)
	two = take(2) // what it left is looked after first
	zero = take(0)
	give(zero, true)
	give(one, true)
	give(two, true)
	give(take(0), true)
}

func TestLanesNeedAHomeThatCanBeRead(t *testing.T) {
	h := newHome(t)
	if err := os.WriteFile(filepath.Join(h.Dir(), "oneshot"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.TakeLane(); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("got %v", err)
	}
	if _, err := daemon.Journals(h.Dir()); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("got %v", err)
	}
}
