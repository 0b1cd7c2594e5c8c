package providertest

import (
	"io"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
)

func recordTests() []test {
	return []test{
		{"recorded_what_was_marked_does_not_come_again", recordMarks},
		{"recorded_nothing_is_dropped_without_a_reader", recordWaits},
		{"recorded_what_was_never_marked_ends", recordUnmarked},
		{"recorded_ended_meanwhile", recordEnded},
		{"recorded_forget_kills", recordForget},
	}
}

// recorded is a program whose output is recorded.
type recorded struct {
	*interactive

	errs *live
	keep string
}

// recorder makes a sandbox for a case of this group.
func (e *env) recorder() cove.Sandbox {
	e.Helper()
	s := e.resumable()
	_, ok := cove.As[cove.Recorder](s)
	e.needs("recorded programs", ok)
	return s
}

func (e *env) recording(keep string, start func(cove.Command) (cove.Process, error)) *recorded {
	e.Helper()
	r, w := io.Pipe()
	e.Cleanup(func() { _ = w.Close() })
	p := &recorded{&interactive{e: e, in: w, out: e.live()}, e.live(), keep}
	var err error
	p.Process, err = start(cove.Command{Stdin: r, Stdout: p.out, Stderr: p.errs, Keep: keep, Record: true})
	e.must(err, "start or resume")
	return p
}

// record starts a program that is recorded.
func (e *env) record(s cove.Sandbox, line string) *recorded {
	e.Helper()
	return e.recording("r1", func(c cove.Command) (cove.Process, error) {
		c.Argv = shell(line).Argv
		return s.Start(e.ctx(), c)
	})
}

// again takes it up after a restart of the provider.
func (e *env) again(s cove.Sandbox, p *recorded) *recorded {
	e.Helper()
	return e.recording(p.keep, func(c cove.Command) (cove.Process, error) {
		return as[cove.Recorder](e, s).Resume(e.ctx(), p.keep, c)
	})
}

func (e *env) mark(s cove.Sandbox, p *recorded, note string, out, errs int64) {
	e.Helper()
	e.must(as[cove.Recorder](e, s).Mark(e.ctx(), p.keep, cove.Mark{Note: []byte(note), Stdout: out, Stderr: errs}), "mark")
}

const echoes = `while read l && [ "$l" != quit ]; do echo "got $l"; echo "err $l" >&2; done; echo end`

func recordMarks(e *env) {
	s := e.recorder()
	p := e.record(s, echoes)
	p.send("a\n")
	p.out.until("got a\n")
	p.errs.until("err a\n")
	e.mark(s, p, "first", 0, 6)
	e.mark(s, p, "second", 4, 6) // a mark may be within a line
	p.send("b\n")
	p.out.until("got b\n")
	p.errs.until("err b\n")
	for round, letter := range []string{"c", "d"} {
		s = e.reattach(s, &keptProgram{p.interactive, p.keep})
		list := e.kept(s)
		equal(e, len(list) == 1 && list[0].Keep == "r1" && string(list[0].Note) == "second", true, "what is kept")
		p = e.again(s, p)
		p.send(letter + "\n")
		p.out.until("got " + letter + "\n")
		p.errs.until("err " + letter + "\n")
		equal(e, p.out.String(), "a\ngot b\ngot c\ngot d\n"[:8+6*(round+1)], "the output from the mark on")
		equal(e, p.errs.String(), "err b\nerr c\nerr d\n"[:6+6*(round+1)], "the errors from the mark on")
	}
	e.mark(s, p, "third", 24, 24)
	p = e.again(e.reattach(s, &keptProgram{p.interactive, p.keep}), p)
	p.send("quit\n")
	e.ended(e.wait(p.interactive), cove.Exited, 0, "")
	equal(e, p.out.String()+p.errs.String(), "end\n", "the output after the last mark")
}

func recordWaits(e *env) {
	s := e.recorder()
	p := e.record(s, `read l; seq 1 500000; echo over >&2; read l`)
	e.mark(s, p, "", 0, 0)
	p.send("go\n")
	p.out.until("1\n")
	s = e.reattach(s, &keptProgram{p.interactive, p.keep})
	p = e.again(s, p)
	p.out.until("\n500000\n")
	var want strings.Builder
	for n := range 500000 {
		_, _ = io.WriteString(&want, strconv.Itoa(n+1)+"\n")
	}
	equal(e, p.out.String() == want.String(), true, "whether all of the output came, in its order")
	p.errs.until("over\n")
	p.send("end\n")
	e.ended(e.wait(p.interactive), cove.Exited, 0, "")
}

func recordUnmarked(e *env) {
	s := e.recorder()
	p := e.record(s, `trap 'echo > ended' TERM; while read l; do :; done; sleep 1000`)
	s = e.reattach(s, &keptProgram{p.interactive, p.keep})
	for _, k := range e.kept(s) {
		equal(e, len(k.Note), 0, "the note of what was never marked")
		e.must(as[cove.Recorder](e, s).Forget(e.ctx(), k.Keep), "forget")
	}
	equal(e, len(e.kept(s)), 0, "the number of kept programs")
}

func recordEnded(e *env) {
	s := e.recorder()
	p := e.record(s, `echo before; read l; echo after; exit 7`)
	p.out.until("before\n")
	e.mark(s, p, "n", 7, 0)
	p.send("go\n")
	p.out.until("after\n")
	e.ended(e.wait(p.interactive), cove.Exited, 7, "")
	again := e.again(e.reattach(s), p)
	e.ended(e.wait(again.interactive), cove.Exited, 7, "")
	equal(e, again.out.String(), "after\n", "the output")
}

func recordForget(e *env) {
	s := e.recorder()
	p := e.record(s, `echo up; read l`)
	p.out.until("up\n")
	e.mark(s, p, "n", 3, 0)
	s = e.reattach(s, &keptProgram{p.interactive, p.keep})
	p = e.again(s, p)
	e.must(as[cove.Recorder](e, s).Forget(e.ctx(), p.keep), "forget")
	e.ended(e.wait(p.interactive), cove.Killed, 137, "KILL")
	equal(e, len(e.kept(s)), 0, "the number of kept programs")
	_, err := as[cove.Recorder](e, s).Resume(e.ctx(), p.keep, cove.Command{Record: true})
	e.wants(cove.NotFound, err, "resuming what was forgotten")
	e.wants(cove.NotFound, as[cove.Recorder](e, s).Mark(e.ctx(), p.keep, cove.Mark{}), "marking what was forgotten")
}
