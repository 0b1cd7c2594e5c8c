package linux_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux"
)

func TestMissing(t *testing.T) {
	bare := &linux.Missing{Feature: "landlock", Why: "the kernel is too old", Remedy: "use Linux 5.13 or newer"}
	if got, want := bare.Error(), "landlock: the kernel is too old"; got != want {
		t.Errorf("Error is %q, want %q", got, want)
	}
	asked := &linux.Missing{Feature: "landlock", Why: "it is switched off", Err: fs.ErrPermission}
	if got, want := asked.Error(), "landlock: it is switched off (permission denied)"; got != want {
		t.Errorf("Error is %q, want %q", got, want)
	}
	if !errors.Is(asked, fs.ErrPermission) || errors.Is(bare, fs.ErrPermission) {
		t.Error("the kernel's own error is lost or invented")
	}
	if code := cove.CodeOf(fmt.Errorf("probe: %w", bare)); code != cove.Unsupported {
		t.Errorf("the code is %q, want %q", code, cove.Unsupported)
	}
	if got := linux.RemedyOf(fmt.Errorf("probe: %w", bare)); got != bare.Remedy {
		t.Errorf("the remedy is %q, want %q", got, bare.Remedy)
	}
	if got := linux.RemedyOf(fs.ErrExist); got != "" {
		t.Errorf("a foreign error has the remedy %q", got)
	}
}
