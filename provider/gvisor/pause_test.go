//go:build linux

package gvisor_test

import (
	"context"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// TestPauseGivenUp: whenever somebody stops waiting for a pause, a sandbox that is
// resumed goes on.
func TestPauseGivenUp(t *testing.T) {
	p := closeLater(t, open(t))
	s := create(t, p, cove.Spec{})
	pauser, _ := cove.As[cove.Pauser](s)
	for i := range 8 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
		given := pauser.Pause(ctx)
		cancel()
		if err := pauser.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
		run, err := s.Start(ctx, cove.Command{Argv: []string{"true"}})
		if err == nil {
			_, err = run.Wait(ctx)
		}
		cancel()
		if err != nil {
			t.Fatalf("after a pause that ended with %v: %v", given, err)
		}
	}
}

// TestAgentIsOutOfReach: no program can end the agent, stop it or look into it.
func TestAgentIsOutOfReach(t *testing.T) {
	p := closeLater(t, open(t))
	s := create(t, p, cove.Spec{})
	shell(t, s, `for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || kill -KILL ${p#/proc/}; done; kill -STOP 1`)
	shell(t, s, `kill -KILL -1`)
	const look = `for f in environ maps mem fd/0; do head -c 1 /proc/1/$f 2>/dev/null && echo $f; done; prlimit --pid 1 --nofile=1:1 2>/dev/null && echo limits; echo done`
	if _, text := shell(t, s, look); text != "done" {
		t.Error(text)
	}
}
