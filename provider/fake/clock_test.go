package fake_test

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
)

// With a simulated clock hours pass at once: nothing in the fake polls, and
// nothing keeps the clock from going on.
func TestSimulatedClock(t *testing.T) {
	for name, tc := range map[string]struct {
		argv    []string
		wall    time.Duration
		took    time.Duration
		outcome cove.Outcome
	}{
		"sleep":          {argv: []string{"sleep", "2h"}, took: 2 * time.Hour, outcome: cove.Exited},
		"timeout":        {argv: []string{"sleep", "infinity"}, wall: time.Hour, took: time.Hour, outcome: cove.TimedOut},
		"shell":          {argv: []string{"sh", "-c", "sleep 1; (sleep 1; sleep 1) | cat; sleep 1 & wait"}, took: 4 * time.Second, outcome: cove.Exited},
		"timeout of all": {argv: []string{"sh", "-c", "sleep 1000 | cat & sleep 2000; wait"}, wall: time.Minute, took: time.Minute, outcome: cove.TimedOut},
		"spinning":       {argv: []string{"sh", "-c", "while :; do :; done"}, wall: time.Second, took: time.Second, outcome: cove.TimedOut},
		"yes":            {argv: []string{"yes"}, wall: time.Second, took: time.Second, outcome: cove.TimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := sandbox(t, cove.Spec{})
				begun := time.Now()
				p, err := s.Start(t.Context(), cove.Command{Argv: tc.argv, Limits: cove.Limits{Wall: tc.wall}})
				if err != nil {
					t.Fatal(err)
				}
				r, err := p.Wait(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begun); took != tc.took || r.Outcome != tc.outcome || r.Wall != tc.took {
					t.Errorf("it took %s (%s) and ended as %s; want %s and %s", took, r.Wall, r.Outcome, tc.took, tc.outcome)
				}
			})
		})
	}
}

func TestIdleProgramsLetTheClockGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sandbox(t, cove.Spec{})
		in, w := io.Pipe()
		var out bytes.Buffer
		for _, cmd := range []cove.Command{
			{Argv: []string{"cat"}, Stdin: in, Stdout: &out},
			{Argv: []string{"sh", "-c", "cat | sort | uniq"}, Stdin: in},
			{Argv: []string{"cat"}, Stdin: in, TTY: &cove.WindowSize{Cols: 80, Rows: 24}},
			{Argv: []string{"serve", "8080", "x"}},
			{Argv: []string{"sh", "-c", "trap 'echo x' TERM; sleep 5000 & wait"}},
		} {
			if _, err := s.Start(t.Context(), cmd); err != nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		<-time.After(time.Hour)
		if took := time.Since(begun); took != time.Hour {
			t.Errorf("an hour took %s", took)
		}
		if err := s.Destroy(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
	})
}

// A writer that blocks holds its own program up and nobody else.
func TestBlockedWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sandbox(t, cove.Spec{})
		r, w := io.Pipe()
		stuck, err := s.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", "yes & yes & yes"}, Stdout: w})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := sh(t, s, "echo others go on"); got.stdout != "others go on\n" {
			t.Errorf("another program gave %q", got.stdout)
		}
		if err := stuck.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		if u, err := s.Usage(t.Context()); err != nil || u.PIDs != 0 || u.Memory != 0 {
			t.Errorf("after Kill the usage is %+v, %v", u, err)
		}
		if err := s.Destroy(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Wait promises that what was written is delivered, so it waits for the
		// writer; the sandbox is gone long before.
		_ = r.Close()
		if got, err := stuck.Wait(t.Context()); err != nil || got.Outcome != cove.Killed {
			t.Errorf("the stuck program gave %+v, %v", got, err)
		}
	})
}

func TestPausedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sandbox(t, cove.Spec{})
		p, ok := cove.As[cove.Pauser](s)
		if !ok {
			t.Fatal("no pauser")
		}
		var out bytes.Buffer
		prog, err := s.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", "sleep 1; echo on"}, Stdout: &out})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		instant, err := s.Start(t.Context(), cove.Command{Argv: []string{"true"}})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if out.Len() > 0 {
			t.Errorf("a paused program wrote %q", out.String())
		}
		if err := p.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, q := range []cove.Process{prog, instant} {
			if r, err := q.Wait(t.Context()); err != nil || r.ExitCode != 0 {
				t.Errorf("after the pause: %+v, %v", r, err)
			}
		}
	})
}
