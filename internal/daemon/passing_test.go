package daemon_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/daemon"
)

func TestPassing(t *testing.T) {
	cfg := settings(t, "COVE_ARCHIVE_URL", "s3://not-to-be-used?endpoint=http://127.0.0.1:1", "REDIS_URL", "redis://127.0.0.1:1")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	broken := errors.New("broken")
	err := daemon.Passing(t.Context(), cfg, "test", cove.Resources{CPUs: 1, Memory: 32 * cove.MiB}, func(ctx context.Context, url, key string) error {
		c, err := client.New(url, key)
		if err != nil {
			return err
		}
		s, err := c.Sessions().Open(ctx, cove.OpenRequest{})
		if err != nil {
			return err
		}
		if s.Spec.Resources.Memory != 32*cove.MiB {
			t.Errorf("a session has %s", s.Spec.Resources.Memory)
		}
		return errors.Join(c.Close(), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestPassingThatCannotBegin(t *testing.T) {
	cfg := settings(t)
	nobody := func(context.Context, string, string) error { t.Error("there is no server"); return nil }
	bad := cfg
	bad.Provider = "nosuch"
	if err := daemon.Passing(t.Context(), bad, "test", cove.Resources{}, nobody); !errors.Is(err, cove.Invalid) {
		t.Errorf("a provider that is not there: %v", err)
	}
	t.Setenv("TMPDIR", "/nowhere/at/all")
	if err := daemon.Passing(t.Context(), cfg, "test", cove.Resources{}, nobody); !errors.Is(err, cove.Unavailable) || cove.RemedyOf(err) == "" {
		t.Errorf("without room: %v", err)
	}
}
