package measure_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/measure"
)

func TestResident(t *testing.T) {
	n, err := measure.Resident(os.Getpid())
	if err != nil || n < cove.MiB {
		t.Errorf("this process has %d bytes, %v", n, err)
	}
	if _, err := measure.Resident(-1); err == nil {
		t.Error("a process that is not there has memory")
	}
}

func TestGroups(t *testing.T) {
	if _, err := measure.Groups(); err != nil {
		t.Error(err)
	}
}

func TestLeftover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept []*os.File
		defer func() {
			for _, f := range kept {
				_ = f.Close()
			}
		}()
		n := 0
		_, left, err := measure.Leftover(t.Context(), nil, 3, func(context.Context) error {
			if n++; n > 3 { // the first warm up
				return nil
			}
			f, err := os.Open(os.DevNull)
			kept = append(kept, f)
			return err
		})
		if err != nil || left.Descriptors != 2 || left.Surplus() < 2 {
			t.Errorf("%+v, %v", left, err)
		}
		broken := errors.New("broken")
		for at := range 2 {
			if _, _, err := measure.Leftover(t.Context(), nil, 3, func(context.Context) error {
				if at--; at < 0 {
					return broken
				}
				return nil
			}); !errors.Is(err, broken) {
				t.Errorf("what goes wrong: %v", err)
			}
		}
	})
}
