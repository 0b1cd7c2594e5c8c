package providertest

import (
	"context"

	"github.com/cove-sandbox/cove"
)

func pauseTests() []test {
	return []test{
		{"holds_programs_and_lets_them_go_on", pauseHolds},
		{"twice", pauseTwice},
		{"kill_and_destroy_work_while_paused", pauseKill},
		{"after_destroy_is_not_found", pauseGone},
	}
}

func (e *env) pausable() (cove.Sandbox, cove.Pauser) {
	e.Helper()
	e.needsPower(cove.PowerPause)
	s := e.sandbox()
	return s, as[cove.Pauser](e, s)
}

// quiet demands that a program does not end now.
func (e *env) quiet(p cove.Process) {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.ctx(), moment)
	defer cancel()
	if r, err := p.Wait(ctx); err == nil {
		e.Errorf("a program ended while it was paused: %+v", r)
	}
}

func pauseHolds(e *env) {
	s, pauser := e.pausable()
	p := e.interact(s, shell(`echo ready; read line; echo "got $line"`))
	p.out.until("ready")
	e.must(pauser.Pause(e.ctx()), "pause")
	p.send("it\n")
	e.quiet(p)
	equal(e, p.out.String(), "ready\n", "the output while paused")
	e.must(pauser.Resume(e.ctx()), "resume")
	p.out.until("got it\n")
	e.ended(e.wait(p), cove.Exited, 0, "")
	e.prints(s, "goes on\n", "echo goes on")
}

func pauseTwice(e *env) {
	s, pauser := e.pausable()
	e.must(pauser.Resume(e.ctx()), "resume what runs")
	e.must(pauser.Pause(e.ctx()), "pause")
	e.must(pauser.Pause(e.ctx()), "pause again")
	e.must(pauser.Resume(e.ctx()), "resume")
	e.must(pauser.Resume(e.ctx()), "resume again")
	e.prints(s, "on\n", "echo on")
}

func pauseKill(e *env) {
	s, pauser := e.pausable()
	p := e.start(s, cove.Command{Argv: []string{"sleep", "1000"}})
	q := e.start(s, cove.Command{Argv: []string{"sleep", "1000"}})
	e.must(pauser.Pause(e.ctx()), "pause")
	e.must(p.Kill(e.ctx()), "kill")
	e.ended(e.wait(p), cove.Killed, 137, "KILL")
	e.must(s.Destroy(e.ctx()), "destroy")
	e.ended(e.wait(q), cove.Killed, 137, "KILL")
}

func pauseGone(e *env) {
	s, pauser := e.pausable()
	e.must(s.Destroy(e.ctx()), "destroy")
	e.wants(cove.NotFound, pauser.Pause(e.ctx()), "Pause")
	e.wants(cove.NotFound, pauser.Resume(e.ctx()), "Resume")
}
