package platformtest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func blockedCases() []testCase {
	return []testCase{
		{"exec", blockedExec},
		{"start", blockedStart},
		{"terminal", blockedTerminal},
		{"argv", blockedArgv},
		{"journal", blockedJournal},
		{"only_where_asked", blockedOnlyWhereAsked},
	}
}

func agentBash() cove.Spec { return cove.Spec{Policy: "agent-bash"} }

func blockedExec(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, agentBash()).ID
	r.write(p, id, "kept", "text")
	called := false
	e := r.exec(p, id, cove.ExecRequest{Line: "echo ok &&\n  rm -rf kept", OnOutput: func(cove.Chunk) { called = true }})
	if e.Outcome != cove.Blocked || e.ExitCode == 0 || e.Refusal == nil {
		t.Fatalf("a denied command is told as %+v", e)
	}
	got := *e.Refusal
	if got.Rule == "" || got.Reason == "" || got.Word != "rm" || got.Line != 2 || got.Column != 3 {
		t.Errorf("the refusal is %+v; want the word rm at line 2, column 3", got)
	}
	if called || strings.Contains(string(e.Stdout.Data), "ok") {
		t.Error("a part of a blocked line was run")
	}
	same(t, "the file after a blocked rm", r.read(p, id, "kept"), "text")
	same(t, "an allowed line", r.sh(p, id, "echo one two | head -n 1"), "one two\n")
	if r.get(p, id).Busy {
		t.Error("a blocked program keeps its session busy")
	}
}

func blockedStart(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, agentBash()).ID
	info, err := p.Processes(id).Start(r.ctx, cove.ExecRequest{Line: "curl example.com"})
	r.must(err, "start a denied command")
	if info.Running || info.Result == nil || info.Result.Outcome != cove.Blocked || info.Result.Refusal == nil {
		t.Fatalf("a denied background command is told as %+v", info)
	}
	if info.PID > 0 {
		if e := r.wait(p, id, info.PID); e.Outcome != cove.Blocked {
			t.Errorf("Wait tells a denied command as %+v", e.Result)
		}
	}
}

// blockedTerminal: a terminal is a handle to a program, so that a refusal is an error.
func blockedTerminal(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, agentBash()).ID
	size := &cove.WindowSize{Cols: 80, Rows: 24}
	for _, req := range []cove.ExecRequest{{Line: "bash -i", TTY: size}, {Argv: []string{"bash", "-i"}, TTY: size}, {Line: "exec bash", TTY: size, KeepStdin: true}} {
		_, err := p.Processes(id).Start(r.ctx, req)
		wantReason(t, err, cove.Denied, cove.ReasonCommandPolicy)
		wantRemedy(t, err)
		if !strings.Contains(cove.MessageOf(err), "agent-bash") {
			t.Errorf("the error names no policy: %v", err)
		}
	}
	if n := len(all(r, p.Processes(id).List(r.ctx))); n != 0 {
		t.Errorf("%d programs are listed", n)
	}
	info, err := p.Processes(id).Start(r.ctx, cove.ExecRequest{Line: "echo hi", TTY: size})
	if cove.CodeOf(err) == cove.Unsupported {
		return // a host without terminals
	}
	r.must(err, "start an allowed program on a terminal")
	r.wait(p, id, info.PID)
}

func blockedArgv(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, agentBash()).ID
	e := r.exec(p, id, cove.ExecRequest{Argv: []string{"rm", "-rf", "x"}})
	if e.Outcome != cove.Blocked || e.Refusal == nil || e.Refusal.Word != "rm" {
		t.Errorf("a denied argv is told as %+v", e)
	}
	e = r.exec(p, id, cove.ExecRequest{Argv: []string{"echo", "rm -rf x"}})
	if e.Outcome != cove.Exited {
		t.Errorf("an allowed program with a frightening argument is told as %+v", e)
	}
}

func blockedJournal(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, agentBash()).ID
	r.exec(p, id, cove.ExecRequest{Line: "rm very-secret-name"})
	events := all(r, r.admin().Admin().Events(r.ctx, cove.EventFilter{Session: id, Kind: string(cove.ProcessExec)}))
	found := false
	for _, e := range events {
		found = found || e.Effect == cove.Deny && e.Rule != ""
		if e.Code == cove.Denied {
			t.Errorf("a blocked command is journaled as an error: %+v", e)
		}
	}
	raw, err := json.Marshal(events)
	r.must(err, "marshal the events")
	if !found || strings.Contains(string(raw), "very-secret-name") {
		t.Errorf("the journal tells a blocked command as %s", raw)
	}
}

func blockedOnlyWhereAsked(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.write(p, id, "gone", "text")
	r.sh(p, id, "rm gone")
	_, err := p.Files(id).Stat(r.ctx, "gone")
	wantCode(t, err, cove.NotFound)
}
