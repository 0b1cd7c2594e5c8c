package daemon_test

import (
	"errors"
	"os"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

func TestVerifyLeavesNothing(t *testing.T) {
	cfg := settings(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	tried, skipped := 0, 0
	err := daemon.Verify(t.Context(), cfg, func(f escape.Finding) error {
		if f.GotThrough() {
			t.Errorf("%+v", f)
		}
		if f.Skipped == "" {
			tried++
		} else {
			skipped++
		}
		return nil
	})
	if err != nil || tried == 0 || skipped == 0 {
		t.Errorf("tried %d and skipped %d: %v", tried, skipped, err)
	}
	enough := errors.New("enough")
	if err := daemon.Verify(t.Context(), cfg, func(escape.Finding) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("the error is %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestVerifyWithoutRoom(t *testing.T) {
	cfg := settings(t)
	t.Setenv("TMPDIR", "/nowhere/at/all")
	err := daemon.Verify(t.Context(), cfg, func(escape.Finding) error { return nil })
	if !errors.Is(err, cove.Unavailable) || cove.RemedyOf(err) == "" {
		t.Errorf("the error is %v", err)
	}
}
