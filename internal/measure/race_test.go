package measure_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/measure"
)

func TestSeries(t *testing.T) {
	var s measure.Series
	if s.Median() != 0 || s.P95() != 0 || s.Over(s) != 0 {
		t.Error("an empty series has numbers")
	}
	for i := range 100 {
		s = append(s, time.Duration(100-i))
	}
	if s.Median() != 51 || s.P95() != 96 || s.P99() != 100 {
		t.Errorf("median %d, p95 %d", s.Median(), s.P95())
	}
	// In most rounds it is twice the base; the base of one round was disturbed.
	slow, base := measure.Series{20, 40, 60, 80, 0}, measure.Series{10, 20, 30, 4000, 0}
	if got := slow.Over(base); got != 2 {
		t.Errorf("the ratio is %v", got)
	}
}

// pause returns a contender that takes a time of the pretend clock.
func pause(name string, d time.Duration) measure.Contender {
	return measure.Contender{Name: name, Run: func(ctx context.Context) error {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
		return nil
	}}
}

func TestRaceTimesOnlyTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, quick := pause("slow", 30*time.Millisecond), pause("quick", 10*time.Millisecond)
		slow.Before, slow.After = pause("", time.Hour).Run, pause("", time.Hour).Run
		got, err := measure.Race(t.Context(), 5, slow, quick)
		want := []measure.Series{{30e6, 30e6, 30e6, 30e6, 30e6}, {10e6, 10e6, 10e6, 10e6, 10e6}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

func TestRaceTidiesUpAfterErrors(t *testing.T) {
	broken := errors.New("broken")
	fails := func(context.Context) error { return broken }
	fine := func(context.Context) error { return nil }
	for _, tc := range []struct {
		name                string
		before, run, after  func(context.Context) error
		wantRun, wantTidied bool
	}{
		{"before", fails, fine, fine, false, false},
		{"run", fine, fails, fine, true, true},
		{"after", fine, fine, fails, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var ran, tidied bool
			_, err := measure.Race(t.Context(), 1, measure.Contender{
				Name: "somebody", Before: tc.before,
				Run:   func(ctx context.Context) error { ran = true; return tc.run(ctx) },
				After: func(ctx context.Context) error { tidied = true; return tc.after(ctx) },
			})
			if !errors.Is(err, broken) || !strings.Contains(err.Error(), "somebody, round 1") {
				t.Errorf("the error is %v", err)
			}
			if ran != tc.wantRun || tidied != tc.wantTidied {
				t.Errorf("ran %v, tidied %v", ran, tidied)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measure.Race(ctx, 1, measure.Host()); !errors.Is(err, context.Canceled) {
		t.Errorf("a race that was called off: %v", err)
	}
}

func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := measure.Crowd{Workers: 8, Each: 5}
		got, err := measure.Race(t.Context(), 3, k.Of(pause("", 10*time.Millisecond)))
		if err != nil {
			t.Fatal(err)
		}
		if n := k.PerSecond(got[0]); n != 800 {
			t.Errorf("%v in a second", n)
		}
		if n := k.PerSecond(nil); n != 0 {
			t.Errorf("%v in a second of nothing", n)
		}
		broken := errors.New("broken")
		err = k.Of(measure.Contender{Run: func(context.Context) error { return broken }}).Run(t.Context())
		if !errors.Is(err, broken) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestCommandSaysWhatIsWrong(t *testing.T) {
	env := []string{"WORD=inside"}
	if _, err := measure.Race(t.Context(), 1, measure.Command("sh", env, "/bin/sh", "-c", `test "$WORD" = inside && test -z "$HOME"`)); err != nil {
		t.Error(err)
	}
	_, err := measure.Race(t.Context(), 1, measure.Command("sh", nil, "/bin/sh", "-c", "echo so sad >&2; exit 3"))
	if err == nil || !strings.Contains(err.Error(), "so sad") || !strings.Contains(err.Error(), "3") {
		t.Errorf("the error is %v", err)
	}
	t.Setenv("TMPDIR", "/nowhere/at/all")
	if _, err := measure.Race(t.Context(), 1, measure.Command("sh", nil, "/bin/true")); err == nil {
		t.Error("there is room in a directory that does not exist")
	}
}
