package platformtest

import (
	"testing"

	"github.com/cove-sandbox/cove"
)

func signalCases() []testCase {
	return []testCase{
		{"end_a_program", signalEnds},
		{"trap", signalTrap},
		{"bad", signalBad},
	}
}

func signalEnds(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	for _, sig := range []cove.Signal{"TERM", "KILL", "INT"} {
		pid := r.background(p, id, cove.ExecRequest{Argv: []string{"sleep", "600"}})
		r.must(p.Processes(id).Signal(r.ctx, pid, sig), "signal")
		e := r.wait(p, id, pid)
		ended := e.Outcome == cove.Signaled || sig == "KILL" && e.Outcome == cove.Killed
		if !ended || e.Signal != sig || e.ExitCode != 128+sig.Number() {
			t.Errorf("a program that got %s is told as %+v", sig, e.Result)
		}
		wantCode(t, p.Processes(id).Signal(r.ctx, pid, sig), cove.NotFound)
	}
}

func signalTrap(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	pid := r.background(p, id, cove.ExecRequest{Line: "trap 'echo got; exit 7' USR1; echo ready; while true; do sleep 0.05; done"})
	same(t, "the first output", r.take(p, id, pid, 6), "ready\n")
	r.must(p.Processes(id).Signal(r.ctx, pid, "USR1"), "signal")
	e := r.wait(p, id, pid)
	if e.Outcome != cove.Exited || e.ExitCode != 7 || string(e.Stdout.Data) != "ready\ngot\n" {
		t.Errorf("a program that traps a signal ended as %+v with %q", e.Result, e.Stdout.Data)
	}
}

func signalBad(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	pid := r.idle(p, id)
	for _, sig := range []cove.Signal{"", "NOPE", "999", "TERM;KILL"} {
		wantField(t, p.Processes(id).Signal(r.ctx, pid, sig), cove.Invalid, "signal")
	}
	r.must(p.Processes(id).Input(r.ctx, pid, []byte("alive"), true), "input")
	same(t, "the program after bad signals", string(r.wait(p, id, pid).Stdout.Data), "alive")
}
