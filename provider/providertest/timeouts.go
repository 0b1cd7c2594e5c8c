package providertest

import (
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Both are far less than the programs would run; longWall leaves them time to
// start and write something on a busy machine.
const (
	shortWall = 150 * time.Millisecond
	longWall  = 1500 * time.Millisecond
)

func timeoutTests() []test {
	return []test{
		{"ends_the_program", timeoutEnds},
		{"ends_the_whole_tree", timeoutTree},
		{"cannot_be_caught", timeoutTrap},
		{"keeps_what_was_written", timeoutOutput},
		{"spares_a_program_that_is_done", timeoutSpares},
		{"ends_a_program_that_spins", timeoutSpin},
	}
}

func timeoutEnds(e *env) {
	s := e.sandbox()
	r := e.run(s, cove.Command{Argv: []string{"sleep", "1000"}, Limits: cove.Limits{Wall: shortWall}})
	equal(e, r.Outcome, cove.TimedOut, "the outcome")
	equal(e, r.ExitCode, -1, "the exit code")
	if r.Wall < shortWall {
		e.Errorf("it ran for %s; its limit is %s", r.Wall, shortWall)
	}
	e.prints(s, "lives on\n", "echo lives on")
}

func timeoutTree(e *env) {
	s := e.sandbox()
	cmd := shell("sleep 1000 & echo $!; setsid sh -c 'echo $$; exec sleep 1000' & wait")
	cmd.Limits.Wall = longWall
	r := e.run(s, cmd)
	equal(e, r.Outcome, cove.TimedOut, "the outcome")
	pids := strings.Fields(r.stdout)
	equal(e, len(pids), 2, "the number of children")
	for _, pid := range pids {
		e.gone(s, pid)
	}
}

func timeoutTrap(e *env) {
	s := e.sandbox()
	cmd := shell("trap '' TERM INT HUP; while :; do sleep 1000; done")
	cmd.Limits.Wall = shortWall
	equal(e, e.run(s, cmd).Outcome, cove.TimedOut, "the outcome")
}

func timeoutOutput(e *env) {
	s := e.sandbox()
	cmd := shell("echo before; echo error >&2; sleep 1000; echo after")
	cmd.Limits.Wall = longWall
	r := e.run(s, cmd)
	equal(e, r.Outcome, cove.TimedOut, "the outcome")
	equal(e, r.stdout+r.stderr, "before\nerror\n", "the output")
}

func timeoutSpares(e *env) {
	s := e.sandbox()
	r := e.run(s, cove.Command{Argv: []string{"sh", "-c", "exit 5"}, Limits: cove.Limits{Wall: patience}})
	e.ended(r.Result, cove.Exited, 5, "")
	r = e.run(s, cove.Command{Argv: []string{"true"}, Limits: cove.Limits{Wall: patience}})
	e.ended(r.Result, cove.Exited, 0, "")
}

func timeoutSpin(e *env) {
	s := e.sandbox()
	cmd := shell("while :; do :; done")
	cmd.Limits.Wall = shortWall
	equal(e, e.run(s, cmd).Outcome, cove.TimedOut, "the outcome")
	r := e.run(s, cove.Command{Argv: []string{"yes"}, Limits: cove.Limits{Wall: shortWall}, Stdout: discard{}})
	equal(e, r.Outcome, cove.TimedOut, "the outcome of yes")
}

// discard is a writer that keeps nothing.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
