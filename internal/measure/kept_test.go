package measure_test

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	"github.com/cove-sandbox/cove/internal/measure"
)

// asleep starts a process of which nobody needs more than that it is there.
func asleep(t *testing.T) func(context.Context) error {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return func(context.Context) error {
		err := c.Process.Kill()
		_ = c.Wait() // it was killed
		return err
	}
}

func TestKeptIsOfTheSessionsAlone(t *testing.T) {
	end := asleep(t) // of a provider
	defer func() { _ = end(t.Context()) }()
	opened := 0
	m, err := measure.Kept(t.Context(), 3, func(context.Context) (func(context.Context) error, error) {
		opened++
		return asleep(t), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if opened != 4 || m.Sessions != 3 || m.Processes != 1 || m.ProviderProcesses != 1 || m.Private <= 0 || m.Share < m.Private {
		t.Errorf("%d opened, %+v", opened, m)
	}
}

func TestKeptEndsWhatItBegan(t *testing.T) {
	for at := range 3 {
		opened, ended := 0, 0
		_, err := measure.Kept(t.Context(), 2, func(context.Context) (func(context.Context) error, error) {
			opened++
			end := func(context.Context) error { ended++; return nil }
			if opened > at {
				return end, errors.New("no more")
			}
			return end, nil
		})
		if err == nil || opened != at+1 || ended != opened {
			t.Errorf("%d opened, %d ended, %v", opened, ended, err)
		}
	}
}
