package providertest

import (
	"io"
	"strings"

	"github.com/cove-sandbox/cove"
)

// warmTests are cases about programs that are started in a spare.
func warmTests() []test {
	return []test{
		{"started_program_lives_on_after_claim", warmLives},
		{"started_program_is_bound", warmBound},
		{"started_program_is_bound_by_the_spec", warmSpec},
		{"started_program_ends_with_other_processes", warmOther},
		{"started_program_is_killed_while_paused", warmPaused},
		{"discard_ends_what_was_started", warmDiscard},
		{"nothing_is_started_in_a_used_spare", warmUsed},
	}
}

// starter is a spare in which programs can be started.
func (e *env) starter() (cove.Spare, cove.SpareStarter) {
	e.Helper()
	spare := e.spare()
	starter, ok := cove.As[cove.SpareStarter](spare)
	e.needs("programs that are started in a spare", ok)
	return spare, starter
}

var warmResources = cove.Resources{Memory: 64 * cove.MiB, PIDs: 24}

func warmClaim(s *cove.Spec) {
	s.Resources = warmResources
	s.Workspace.Size = 16 * cove.MiB // which counts as memory
}

// echo starts a program that gives back what it is sent.
func (e *env) echo(in cove.SpareStarter) *interactive {
	e.Helper()
	r, w := io.Pipe()
	out := e.live()
	p, err := in.StartIn(e.ctx(), cove.Command{Argv: []string{"cat"}, Dir: "/", Stdin: r, Stdout: out}, warmResources)
	e.must(err, "start in a spare")
	e.Cleanup(func() {
		_ = w.Close()
		e.check(p.Kill(e.last()), "kill")
	})
	return &interactive{p, e, w, out}
}

func (i *interactive) echoes(text string) {
	i.e.Helper()
	i.send(text)
	i.out.until(text)
}

func warmLives(e *env) {
	spare, in := e.starter()
	c := e.echo(in)
	c.echoes("before\n")
	s, err := spare.Claim(e.ctx(), cove.NewID(), e.spec(warmClaim))
	e.must(err, "claim")
	e.destroyLater(s)
	c.echoes("after\n")
	e.prints(s, "fine\n", "echo fine")
	e.check(c.in.Close(), "end the input")
	e.ended(e.wait(c), cove.Exited, 0, "")

	spare, in = e.starter()
	c = e.echo(in)
	s, err = spare.Claim(e.ctx(), cove.NewID(), e.spec(warmClaim))
	e.must(err, "claim")
	e.must(s.Destroy(e.ctx()), "destroy")
	e.ended(e.wait(c), cove.Killed, 137, "KILL")
}

func warmBound(e *env) {
	e.needsHard(cove.LimitPIDs)
	_, in := e.starter()
	out := e.live()
	p, err := in.StartIn(e.ctx(), cove.Command{
		Argv: []string{"sh", "-c", "i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done; echo all started"}, Dir: "/", Stdout: out,
	}, warmResources)
	e.must(err, "start in a spare")
	if r := e.wait(p); r.ExitCode == 0 || strings.Contains(out.String(), "all started") {
		e.Errorf("200 processes started in a spare where %d are allowed", warmResources.PIDs)
	}
}

// warmSpec demands that the memory of the spec holds for what was started before
// there was one, and that its end is told as what it was.
func warmSpec(e *env) {
	e.needsHard(cove.LimitMemory)
	spare, in := e.starter()
	r, w := io.Pipe()
	p, err := in.StartIn(e.ctx(), cove.Command{Argv: []string{"tail", "-c", "4G"}, Dir: "/", Stdin: r}, cove.Resources{Memory: cove.GiB, PIDs: 24})
	e.must(err, "start in a spare")
	s, err := spare.Claim(e.ctx(), cove.NewID(), e.spec(warmClaim))
	e.must(err, "claim")
	e.destroyLater(s)
	go func() {
		_, _ = io.Copy(w, endless{}) // ends with the program
		_ = w.Close()
	}()
	e.ended(e.wait(p), cove.OutOfMemory, 137, "KILL")
	e.check(r.Close(), "end the input")
	e.prints(s, "lives on\n", "echo lives on")
}

func warmOther(e *env) {
	spare, in := e.starter()
	c := e.echo(in)
	_, err := in.StartIn(e.ctx(), cove.Command{Argv: []string{"cat"}, Dir: "/"}, cove.Resources{PIDs: 7})
	e.wants(cove.Conflict, err, "starting with other resources")
	s, err := spare.Claim(e.ctx(), cove.NewID(), e.spec(warmClaim, func(s *cove.Spec) { s.Resources.PIDs = 48 }))
	e.must(err, "claim")
	e.destroyLater(s)
	e.ended(e.wait(c), cove.Killed, 137, "KILL")
	e.prints(s, "fine\n", "echo fine")
}

func warmPaused(e *env) {
	e.needsPower(cove.PowerPause)
	spare, in := e.starter()
	c := e.echo(in)
	s, err := spare.Claim(e.ctx(), cove.NewID(), e.spec(warmClaim))
	e.must(err, "claim")
	e.destroyLater(s)
	pauser := as[cove.Pauser](e, s)
	e.must(pauser.Pause(e.ctx()), "pause")
	e.must(c.Kill(e.ctx()), "kill")
	e.must(pauser.Resume(e.ctx()), "resume")
	e.ended(e.wait(c), cove.Killed, 137, "KILL")
}

func warmDiscard(e *env) {
	spare, in := e.starter()
	c := e.echo(in)
	c.echoes("hello\n")
	e.must(spare.Discard(e.ctx()), "discard")
	e.ended(e.wait(c), cove.Killed, 137, "KILL")
}

func warmUsed(e *env) {
	spare, in := e.starter()
	s, err := spare.Claim(e.ctx(), cove.NewID(), e.spec())
	e.must(err, "claim")
	e.destroyLater(s)
	_, err = in.StartIn(e.ctx(), cove.Command{Argv: []string{"true"}}, cove.Resources{})
	e.wants(cove.Conflict, err, "starting in a spare that was claimed")
	spare, in = e.starter()
	_, err = in.StartIn(e.ctx(), cove.Command{Argv: []string{"true"}}, cove.Resources{PIDs: -1})
	e.wants(cove.Invalid, err, "starting with resources that cannot be")
	e.must(spare.Discard(e.ctx()), "discard")
	_, err = in.StartIn(e.ctx(), cove.Command{Argv: []string{"true"}}, cove.Resources{})
	e.wants(cove.Conflict, err, "starting in a spare that was discarded")
}
