package platformtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// restartPrograms: no number is used twice. What cannot go on is not told as if
// it did, nor as if it had ended well.
func restartPrograms(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerAttach)
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	done := r.background(p, id, cove.ExecRequest{Line: "echo done"})
	r.wait(p, id, done)
	going := r.idle(p, id)
	kept := slices.Contains(r.capabilities().Powers, cove.PowerResume)
	r.restart()
	p = r.user("acme")
	if next := r.background(p, id, cove.ExecRequest{Line: "true"}); next <= going {
		t.Errorf("after a restart the number %d is used again; the last was %d", next, going)
	}
	if kept {
		return // the next case is about that
	}
	for _, info := range all(r, p.Processes(id).List(r.ctx)) {
		if info.PID == going && info.Result != nil && info.Result.Outcome == cove.Exited {
			t.Errorf("a program that a restart cut off is listed as %+v", info)
		}
	}
	e, err := p.Processes(id).Wait(r.ctx, going)
	if err != nil {
		wantCode(t, err, cove.NotFound)
	} else if e.Outcome == cove.Exited {
		t.Errorf("a program that a restart cut off is told as %+v", e.Result)
	}
}

// restartKept: background programs go on as if nothing had happened, and those
// in the foreground do not.
func restartKept(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerAttach)
	r.needs(cove.PowerResume)
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	done := r.background(p, id, cove.ExecRequest{Line: "echo out; echo err >&2; exit 3"})
	ended := r.wait(p, id, done)
	going := r.background(p, id, cove.ExecRequest{
		Line: `echo ready; while read l; do echo "got $l"; done; exit 4`, KeepStdin: true, Limits: cove.Limits{Wall: time.Hour},
	})
	r.input(p, id, going, "one\n", false)
	before := r.until(p, id, going, 0, "got one\n")
	table := all(r, p.Processes(id).List(r.ctx))
	r.restart()
	p = r.user("acme")
	for i, info := range all(r, p.Processes(id).List(r.ctx)) {
		if want := table[i]; info.PID != want.PID || info.Command != want.Command || info.OutputID != want.OutputID || !info.StartedAt.Equal(want.StartedAt) {
			t.Errorf("after a restart a program is listed as %+v, and was as %+v", info, want)
		}
	}
	if !r.get(p, id).Busy {
		t.Error("a session with a running program is not busy after a restart")
	}
	same(t, "a program that had ended", r.wait(p, id, done), ended)
	r.input(p, id, going, "two\n", true)
	e := r.wait(p, id, going)
	if e.Outcome != cove.Exited || e.ExitCode != 4 {
		t.Errorf("the program ended as %+v", e.Result)
	}
	same(t, "its whole output", r.until(p, id, going, 0, ""), "ready\ngot one\ngot two\n")
	same(t, "its output from where the restart was", r.until(p, id, going, int64(len(before)), ""), "got two\n")
	_, err := p.Processes(id).Wait(r.ctx, going+1)
	wantCode(t, err, cove.NotFound)
}

func restartTerminal(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	for _, power := range []cove.Power{cove.PowerAttach, cove.PowerResume, cove.PowerTerminal} {
		r.needs(power)
	}
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	pid := r.background(p, id, cove.ExecRequest{
		Line: "stty -echo; echo ready; while read l; do stty size; done", TTY: &cove.WindowSize{Cols: 80, Rows: 24},
	})
	r.until(p, id, pid, 0, "ready\r\n")
	r.restart()
	p = r.user("acme")
	r.must(p.Processes(id).Resize(r.ctx, pid, cove.WindowSize{Cols: 132, Rows: 50}), "resize")
	r.input(p, id, pid, "\n", false)
	same(t, "the screen", r.until(p, id, pid, 0, "132\r\n"), "ready\r\n50 132\r\n")
	r.must(p.Processes(id).Signal(r.ctx, pid, "KILL"), "kill")
	if e := r.wait(p, id, pid); e.Outcome != cove.Killed {
		t.Errorf("the terminal ended as %+v", e.Result)
	}
}

func (r *rig) input(p cove.Platform, id cove.ID, pid cove.PID, text string, eof bool) {
	r.t.Helper()
	r.must(p.Processes(id).Input(r.ctx, pid, []byte(text), eof), "input")
}

// until reads from an offset on until a text has come, or to the end if that is
// "".
func (r *rig) until(p cove.Platform, id cove.ID, pid cove.PID, offset int64, text string) string {
	r.t.Helper()
	var got strings.Builder
	for c, err := range p.Processes(id).Connect(r.ctx, pid, offset) {
		r.must(err, "connect")
		got.Write(c.Data)
		if text != "" && strings.Contains(got.String(), text) {
			break
		}
	}
	return got.String()
}
