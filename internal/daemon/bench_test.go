package daemon_test

import (
	"errors"
	"os"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/measure"
)

func TestBenchLeavesNothing(t *testing.T) {
	cfg := settings(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	r, err := daemon.Bench(t.Context(), cfg, measure.Config{Rounds: 1, Workers: 2, Sessions: 2})
	if err != nil || r.Provider != "fake" || len(r.Timings) == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestBenchWithoutRoom(t *testing.T) {
	cfg := settings(t)
	t.Setenv("TMPDIR", "/nowhere/at/all")
	_, err := daemon.Bench(t.Context(), cfg, measure.Config{})
	if !errors.Is(err, cove.Unavailable) || cove.RemedyOf(err) == "" {
		t.Errorf("the error is %v", err)
	}
}
