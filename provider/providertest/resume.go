package providertest

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

func resumeTests() []test {
	return append([]test{
		{"keeps_to_its_list", keptUnderAList},
		{"output_is_complete_from_the_first_byte", resumeOutput},
		{"programs_are_listed_with_their_notes", resumeKept},
		{"dropped_output_is_counted", resumeDropped},
		{"ended_meanwhile", resumeEnded},
		{"paused_meanwhile", resumePaused},
		{"input_goes_on", resumeInput},
		{"end_of_input_stays_the_end", resumeInputEnd},
		{"terminal_goes_on", resumeTerminal},
		{"signals_and_kill", resumeSignals},
		{"time_limit_counts_from_now", resumeWall},
		{"forget_kills", resumeForget},
		{"names_and_notes_are_checked", resumeNames},
		{"what_is_not_kept_ends", resumeOthers},
		{"destroy_ends_what_is_kept", resumeDestroy},
	}, recordTests()...)
}

// errCutOff is what the reader of a program's input says when the process that
// started the program ends.
var errCutOff = errors.New("the caller is gone")

// keptProgram is a program that is to outlive the provider's restart.
type keptProgram struct {
	*interactive

	keep string
}

// resumable makes a sandbox for a case of this group.
func (e *env) resumable() cove.Sandbox {
	e.Helper()
	e.needsPower(cove.PowerResume)
	e.needsPower(cove.PowerAttach)
	return e.sandbox()
}

// keep starts a program under a name.
func (e *env) keep(s cove.Sandbox, keep string, cmd cove.Command) *keptProgram {
	e.Helper()
	cmd.Keep = keep
	return &keptProgram{e.connected(func(c cove.Command) (cove.Process, error) {
		c.Argv, c.TTY, c.Keep, c.Note, c.Programs = cmd.Argv, cmd.TTY, cmd.Keep, cmd.Note, cmd.Programs
		return s.Start(e.ctx(), c)
	}), keep}
}

// connected gives a program streams that the case holds.
func (e *env) connected(start func(cove.Command) (cove.Process, error)) *interactive {
	e.Helper()
	r, w := io.Pipe()
	e.Cleanup(func() { _ = w.Close() })
	i := &interactive{e: e, in: w, out: e.live()}
	p, err := start(cove.Command{Stdin: r, Stdout: i.out, Stderr: i.out})
	e.must(err, "start or resume")
	i.Process = p
	return i
}

// resume finds the program again.
func (e *env) resume(s cove.Sandbox, keep string, limits cove.Limits) *interactive {
	e.Helper()
	return e.connected(func(c cove.Command) (cove.Process, error) {
		c.Limits = limits
		return as[cove.Resumer](e, s).Resume(e.ctx(), keep, c)
	})
}

// reattach restarts the provider and attaches. The inputs end as they do when a
// process lets go of programs that it keeps.
func (e *env) reattach(s cove.Sandbox, programs ...*keptProgram) cove.Sandbox {
	e.Helper()
	for _, p := range programs {
		_ = p.in.CloseWithError(errCutOff)
	}
	e.restart()
	again, err := e.p.Attach(e.ctx(), s.ID())
	e.must(err, "attach")
	return again
}

func (e *env) kept(s cove.Sandbox) []cove.Kept {
	e.Helper()
	var list []cove.Kept
	for k, err := range as[cove.Resumer](e, s).Kept(e.ctx()) {
		e.must(err, "list what is kept")
		list = append(list, k)
	}
	return list
}

const countSlowly = `i=0; while [ $i -lt 8 ]; do echo $i; i=$((i+1)); sleep 0.03; done; echo err >&2
while [ ! -e go ]; do sleep 0.03; done; echo end; exit 3`

func resumeOutput(e *env) {
	s := e.resumable()
	p := e.keep(s, "p1", shell(countSlowly))
	p.out.until("0\n")
	again := e.reattach(s, p)
	r := e.resume(again, "p1", cove.Limits{})
	r.out.until("err\n")
	e.write(again, "go", "")
	e.ended(e.wait(r), cove.Exited, 3, "")
	const want = "0\n1\n2\n3\n4\n5\n6\n7\nerr\nend\n"
	equal(e, r.out.String(), want, "the output")
	once := e.resume(again, "p1", cove.Limits{})
	e.ended(e.wait(once), cove.Exited, 3, "")
	equal(e, once.out.String(), want, "the output, resumed after the end")
}

func resumeKept(e *env) {
	s := e.resumable()
	equal(e, len(e.kept(s)), 0, "the number of kept programs")
	note := strings.Repeat("n\x00", 8<<10)
	one := shell("sleep 1000")
	one.Note = []byte(note)
	a := e.keep(s, "p1", one)
	b := e.keep(s, strings.Repeat("Z9-", 21)+"z", cove.Command{Argv: []string{"cat"}})
	for _, box := range []func() cove.Sandbox{
		func() cove.Sandbox { return s },
		func() cove.Sandbox { return e.reattach(s, a, b) },
	} {
		found := map[string]string{}
		for _, k := range e.kept(box()) {
			found[k.Keep] = string(k.Note)
		}
		equal(e, len(found), 2, "the number of kept programs")
		equal(e, found[a.keep] == note, true, "whether the note is as it was given")
		got, ok := found[b.keep]
		equal(e, ok && got == "", true, "whether a program without a note is there")
	}
}

func resumeEnded(e *env) {
	s := e.resumable()
	p := e.keep(s, "p1", shell("echo done; exit 7"))
	e.ended(e.wait(p), cove.Exited, 7, "")
	k := e.keep(s, "p2", shell("sleep 0.1; kill -TERM $$; sleep 1000"))
	again := e.reattach(s, p, k)
	r := e.resume(again, "p1", cove.Limits{Wall: 1})
	e.ended(e.wait(r), cove.Exited, 7, "")
	equal(e, r.out.String(), "done\n", "the output")
	e.wants(cove.NotFound, r.Signal(e.ctx(), "TERM"), "a signal after the end")
	e.ended(e.wait(e.resume(again, "p2", cove.Limits{})), cove.Signaled, 143, "TERM")
}

// resumePaused: a sandbox that is paused when the provider ends runs when it is attached,
// so that its programs can be taken up, and can be paused again after that.
func resumePaused(e *env) {
	e.needsPower(cove.PowerPause)
	s := e.resumable()
	p := e.keep(s, "p1", shell(countSlowly))
	p.out.until("0\n")
	for range 2 {
		e.must(as[cove.Pauser](e, s).Pause(e.ctx()), "pause")
		s = e.reattach(s, p)
		equal(e, len(e.kept(s)), 1, "the number of kept programs")
		p = &keptProgram{e.resume(s, "p1", cove.Limits{}), "p1"}
		e.must(as[cove.Pauser](e, s).Pause(e.ctx()), "pause after the restart")
		e.quiet(p.interactive)
	}
	e.must(as[cove.Pauser](e, s).Resume(e.ctx()), "resume")
	e.write(s, "go", "")
	e.ended(e.wait(p), cove.Exited, 3, "")
	equal(e, p.out.String(), "0\n1\n2\n3\n4\n5\n6\n7\nerr\nend\n", "the output")
}

func resumeInput(e *env) {
	s := e.resumable()
	p := e.keep(s, "p1", shell(`while read l; do echo "got $l"; done; echo end`))
	p.send("a\n")
	p.out.until("got a\n")
	r := e.resume(e.reattach(s, p), "p1", cove.Limits{})
	r.send("b\n")
	r.out.until("got b\n")
	e.must(r.in.Close(), "close the input")
	e.ended(e.wait(r), cove.Exited, 0, "")
	equal(e, r.out.String(), "got a\ngot b\nend\n", "the output")
}

func resumeInputEnd(e *env) {
	s := e.resumable()
	p := e.keep(s, "p1", shell(`cat; echo over; while [ ! -e go ]; do sleep 0.03; done`))
	e.must(p.in.Close(), "close the input")
	p.out.until("over\n")
	again := e.reattach(s)
	e.write(again, "go", "")
	e.ended(e.wait(e.resume(again, "p1", cove.Limits{})), cove.Exited, 0, "")
}

func resumeTerminal(e *env) {
	e.needsPower(cove.PowerTerminal)
	s := e.resumable()
	cmd := shell(`stty -echo; echo ready; while read l; do stty size; done`)
	cmd.TTY = &cove.WindowSize{Cols: 80, Rows: 24}
	p := e.keep(s, "p1", cmd)
	p.out.until("ready\r\n")
	p.send("\n")
	p.out.until("24 80\r\n")
	r := e.resume(e.reattach(s, p), "p1", cove.Limits{})
	e.must(r.Resize(e.ctx(), cove.WindowSize{Cols: 132, Rows: 50}), "resize")
	r.send("\n")
	r.out.until("50 132\r\n")
	r.send("\x04")
	e.ended(e.wait(r), cove.Exited, 0, "")
	equal(e, r.out.String(), "ready\r\n24 80\r\n50 132\r\n", "the output")
}

func resumeSignals(e *env) {
	s := e.resumable()
	one := e.keep(s, "p1", shell("trap 'echo caught; exit 4' TERM; echo ready; while :; do sleep 0.03; done"))
	two := e.keep(s, "p2", shell("sleep 1000 & echo $!; wait"))
	one.out.until("ready\n")
	child := two.out.line()
	again := e.reattach(s, one, two)
	r := e.resume(again, "p1", cove.Limits{})
	e.must(r.Signal(e.ctx(), "TERM"), "signal")
	e.ended(e.wait(r), cove.Exited, 4, "")
	k := e.resume(again, "p2", cove.Limits{})
	e.must(k.Kill(e.ctx()), "kill")
	e.ended(e.wait(k), cove.Killed, 137, "KILL")
	e.gone(again, child)
}

func resumeWall(e *env) {
	s := e.resumable()
	p := e.keep(s, "p1", shell("echo ready; sleep 1000"))
	p.out.until("ready\n")
	r := e.resume(e.reattach(s, p), "p1", cove.Limits{Wall: 50 * time.Millisecond})
	e.ended(e.wait(r), cove.TimedOut, -1, "KILL")
}

func resumeForget(e *env) {
	s := e.resumable()
	res := as[cove.Resumer](e, s)
	p := e.keep(s, "p1", shell("echo $$; sleep 1000"))
	pid := p.out.line()
	e.must(res.Forget(e.ctx(), "p1"), "forget")
	e.gone(s, pid)
	equal(e, len(e.kept(s)), 0, "the number of kept programs")
	for range 2 {
		e.must(res.Forget(e.ctx(), "p1"), "forget what is not there")
	}
	_, err := res.Resume(e.ctx(), "p1", cove.Command{})
	e.wants(cove.NotFound, err, "resuming what is forgotten")
	q := e.keep(s, "p2", shell("echo $$; sleep 1000"))
	other := q.out.line()
	again := e.reattach(s, q)
	e.must(as[cove.Resumer](e, again).Forget(e.ctx(), "p2"), "forget after a restart, without resuming")
	e.gone(again, other)
}

func resumeNames(e *env) {
	s := e.resumable()
	for name, keep := range map[string]string{
		"too long": strings.Repeat("a", 65), "a slash": "a/b", "dots": "..", "a space": "a b", "a NUL": "a\x00", "not ASCII": "ü", "a line": "a\n",
	} {
		_, err := s.Start(e.ctx(), cove.Command{Argv: []string{"true"}, Keep: keep})
		e.wants(cove.Invalid, err, "a name with "+name)
	}
	_, err := s.Start(e.ctx(), cove.Command{Argv: []string{"true"}, Keep: "p", Note: make([]byte, 16<<10+1)})
	e.wants(cove.Invalid, err, "a note of more than 16 KiB")
	equal(e, len(e.kept(s)), 0, "the number of kept programs")
	for _, argv := range [][]string{{"true"}, {"no-such-program"}} {
		p, err := s.Start(e.ctx(), cove.Command{Argv: argv, Keep: "k-" + argv[0]})
		e.must(err, "start")
		e.wait(p)
		_, err = s.Start(e.ctx(), cove.Command{Argv: []string{"true"}, Keep: "k-" + argv[0]})
		e.wants(cove.Conflict, err, "a name that is taken by a program that has ended")
	}
	_, err = as[cove.Resumer](e, s).Resume(e.ctx(), "p", cove.Command{})
	e.wants(cove.NotFound, err, "resuming what never was")
}

func resumeOthers(e *env) {
	s := e.resumable()
	p := e.keep(s, "", shell("echo $$; sleep 1000"))
	pid := p.out.line()
	k := e.keep(s, "p1", shell("echo ready; sleep 1000"))
	k.out.until("ready\n")
	again := e.reattach(s, p, k)
	e.gone(again, pid)
	equal(e, len(e.kept(again)), 1, "the number of kept programs")
}

func resumeDestroy(e *env) {
	s := e.resumable()
	p := e.keep(s, "p1", shell("sleep 1000"))
	again := e.reattach(s, p)
	e.must(again.Destroy(e.ctx()), "destroy")
	_, err := as[cove.Resumer](e, again).Resume(e.ctx(), "p1", cove.Command{})
	e.wants(cove.NotFound, err, "resuming in a sandbox that is gone")
	e.wants(cove.NotFound, as[cove.Resumer](e, again).Forget(e.ctx(), "p1"), "forgetting in a sandbox that is gone")
	equal(e, len(e.ids()), 0, "the number of sandboxes")
}
