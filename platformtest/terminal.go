package platformtest

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func terminalCases() []testCase {
	return []testCase{
		{"size_and_resize", sizeAndResize},
		{"no_terminal", noTerminal},
	}
}

// sizeAndResize: a terminal has the size it was given, and then the one that
// Resize gave it. The program reads a line in between, so that nothing races.
func sizeAndResize(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerTerminal)
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	info, err := p.Processes(id).Start(r.ctx, cove.ExecRequest{
		Line: "stty size; read line; stty size", TTY: &cove.WindowSize{Cols: 80, Rows: 24}, KeepStdin: true,
	})
	r.must(err, "start with a terminal")
	if !info.TTY {
		t.Error("a program with a terminal says that it has none")
	}
	if got := r.take(p, id, info.PID, len("24 80")); !strings.Contains(got, "24 80") {
		t.Errorf("the size at first is %q", got)
	}
	r.must(p.Processes(id).Resize(r.ctx, info.PID, cove.WindowSize{Cols: 132, Rows: 50}), "resize")
	r.must(p.Processes(id).Input(r.ctx, info.PID, []byte("go\n"), false), "input")
	e := r.wait(p, id, info.PID)
	if !strings.Contains(string(e.Stdout.Data), "50 132") || e.Stderr.Bytes != 0 {
		t.Errorf("after a resize the terminal shows %q, stderr has %d bytes", e.Stdout.Data, e.Stderr.Bytes)
	}
	wantCode(t, p.Processes(id).Resize(r.ctx, info.PID, cove.WindowSize{Cols: 1, Rows: 1}), cove.NotFound, cove.Conflict)
}

func noTerminal(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	pid := r.idle(p, id)
	wantCode(t, p.Processes(id).Resize(r.ctx, pid, cove.WindowSize{Cols: 80, Rows: 24}), cove.Unsupported)
	wantCode(t, p.Processes(id).Resize(r.ctx, pid, cove.WindowSize{}), cove.Invalid, cove.Unsupported)
	r.must(p.Processes(id).Input(r.ctx, pid, nil, true), "end the input")
	r.wait(p, id, pid)
}
