package providertest

import (
	"context"
	"fmt"
	"strings"

	"github.com/cove-sandbox/cove"
)

func signalTests() []test {
	return []test{
		{"default_action_ends_the_program", signalEnds},
		{"trap_catches", signalTrap},
		{"ignored_is_ignored", signalIgnored},
		{"goes_to_the_program_alone", signalAlone},
		{"stop_and_continue", signalStop},
		{"unknown_is_invalid", signalUnknown},
		{"after_the_end_is_not_found", signalLate},
		{"program_that_signals_itself", signalSelf},
	}
}

func signalEnds(e *env) {
	s := e.sandbox()
	for sig, code := range map[cove.Signal]int{"TERM": 143, "KILL": 137, "INT": 130, "HUP": 129, "USR1": 138} {
		p := e.interact(s, cove.Command{Argv: []string{"cat"}})
		p.send("up\n")
		p.out.until("up")
		e.must(p.Signal(e.ctx(), sig), "signal")
		e.ended(e.wait(p), cove.Signaled, code, sig)
	}
}

func signalTrap(e *env) {
	s := e.sandbox()
	p := e.interact(s, shell(`trap 'echo caught; exit 9' TERM; echo ready; sleep 1000 & wait`))
	p.out.until("ready")
	e.must(p.Signal(e.ctx(), "TERM"), "signal")
	e.ended(e.wait(p), cove.Exited, 9, "")
	p.out.until("caught\n")
}

func signalIgnored(e *env) {
	s := e.sandbox()
	p := e.interact(s, shell(`trap '' TERM; echo ready; read line; echo "read $line"`))
	p.out.until("ready")
	e.must(p.Signal(e.ctx(), "TERM"), "signal")
	p.send("on\n")
	e.ended(e.wait(p), cove.Exited, 0, "")
	p.out.until("read on\n")
}

func signalAlone(e *env) {
	s := e.sandbox()
	p := e.interact(s, shell(`exec 3<&0; trap 'echo parent' USR1; sh -c 'trap "echo child" USR1; echo ready; read line' <&3 & wait; wait; exit 0`))
	p.out.until("ready")
	e.must(p.Signal(e.ctx(), "USR1"), "signal")
	p.out.until("parent\n")
	e.must(p.in.Close(), "close the input")
	e.wait(p)
	equal(e, p.out.String(), "ready\nparent\n", "who got the signal")
}

func signalStop(e *env) {
	s := e.sandbox()
	p := e.interact(s, cove.Command{Argv: []string{"cat"}})
	p.send("one\n")
	p.out.until("one\n")
	e.must(p.Signal(e.ctx(), "STOP"), "stop")
	line := ""
	for i := range 20 { // the signal may be on its way while the program goes on
		line = fmt.Sprintf("line %d\n", i)
		p.send(line)
		ctx, cancel := context.WithTimeout(e.ctx(), moment)
		r, err := p.Wait(ctx)
		cancel()
		if err == nil {
			e.Fatalf("a program that was stopped ended: %+v", r)
		}
		if !strings.Contains(p.out.String(), line) {
			break
		}
	}
	if strings.Contains(p.out.String(), line) {
		e.Errorf("a program that was stopped goes on: %q", p.out.String())
	}
	e.must(p.Signal(e.ctx(), "CONT"), "continue")
	p.out.until(line)
	e.must(p.in.Close(), "close the input")
	e.ended(e.wait(p), cove.Exited, 0, "")
}

func signalUnknown(e *env) {
	s := e.sandbox()
	p := e.interact(s, cove.Command{Argv: []string{"cat"}})
	for _, sig := range []cove.Signal{"", "NOPE", "SIGTERM", "-9"} {
		e.wants(cove.Invalid, p.Signal(e.ctx(), sig), "signal "+string(sig))
	}
	e.must(p.in.Close(), "close the input")
	e.ended(e.wait(p), cove.Exited, 0, "")
}

func signalLate(e *env) {
	s := e.sandbox()
	for _, argv := range [][]string{{"true"}, {"sh", "-c", "exit 3"}} {
		p := e.start(s, cove.Command{Argv: argv})
		before := e.wait(p)
		e.wants(cove.NotFound, p.Signal(e.ctx(), "TERM"), "a signal after the end")
		e.check(p.Kill(e.ctx()), "kill after the end")
		equal(e, e.wait(p), before, "the result")
	}
}

func signalSelf(e *env) {
	s := e.sandbox()
	e.ended(e.sh(s, "kill -TERM $$; sleep 1000").Result, cove.Signaled, 143, "TERM")
	e.ended(e.sh(s, "kill -KILL $$; sleep 1000").Result, cove.Signaled, 137, "KILL")
	e.prints(s, "143\n", "sh -c 'kill -TERM $$; sleep 1000'; echo $?")
}
