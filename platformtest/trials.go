package platformtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func trialCalls() map[cove.Verb]call {
	return map[cove.Verb]call{
		cove.TrialRun: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Trials(at.session).Run(ctx, cove.TrialRequest{ExecRequest: cove.ExecRequest{Line: "true"}, Then: cove.ThenDiscard}))
		}},
		cove.TrialGet: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Trials(at.session).Get(ctx))
		}},
		cove.TrialBefore: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Trials(at.session).Before(ctx, "f"))
		}},
		cove.TrialCommit: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Trials(at.session).Commit(ctx)
		}},
		cove.TrialDiscard: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Trials(at.session).Discard(ctx)
		}},
	}
}

func trialCases() []testCase {
	return []testCase{
		{"kept_open", trialKeptOpen},
		{"before", trialBefore},
		{"ended_at_once", trialEndedAtOnce},
		{"one_at_a_time", trialOneAtATime},
		{"holds_the_session", trialHolds},
		{"programs_are_named", trialPrograms},
		{"what_it_left_behind_is_ended", trialLeftBehind},
		{"blocked", trialBlocked},
		{"input_and_output", trialStreams},
		{"cannot_be_run", trialCannot},
		{"caller_gone", trialCallerGone},
		{"many_changes", trialMany},
		{"odd_names", trialOddNames},
		{"close_discards", trialClose},
		{"restart", trialRestart},
		{"without_the_power", trialLacking},
	}
}

// try runs a line on trial.
func (r *rig) try(p cove.Platform, id cove.ID, line string, then cove.TrialEnd) *cove.TrialResult {
	r.t.Helper()
	out, err := p.Trials(id).Run(r.ctx, cove.TrialRequest{ExecRequest: cove.ExecRequest{Line: line}, Then: then})
	r.must(err, "try "+line)
	return out
}

// told is a trial's changes as "kind path", the path below the workspace.
func told(out *cove.TrialResult) []string {
	list := []string{}
	for _, c := range out.Changes {
		list = append(list, string(c.Kind)+" "+strings.TrimPrefix(c.Path, cove.WorkspacePath+"/"))
	}
	return list
}

// trialRig is a platform with a session that has a few files.
func (s *suite) trialRig(t *testing.T) (*rig, cove.Platform, cove.ID) {
	t.Helper()
	r := s.start(t, Options{})
	r.needs(cove.PowerTrial)
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.sh(p, id, "echo old > f; echo gone > g")
	return r, p, id
}

const trialLine = "echo newer > f; rm g; echo 12345 > made; echo done"

func trialKeptOpen(t *testing.T, s *suite) {
	r, p, id := s.trialRig(t)
	for _, commit := range []bool{false, true} {
		out := r.try(p, id, trialLine, cove.ThenKeep)
		if x := out.Execution; x == nil || x.Outcome != cove.Exited || x.ExitCode != 0 || string(x.Stdout.Data) != "done\n" || x.Provider == "" {
			t.Errorf("the program is told as %+v", x)
		}
		same(t, "what it changed", told(out), []string{"modified f", "removed g", "created made"})
		if !out.Open || out.Committed || out.Truncated || out.Created != 1 || out.Modified != 1 || out.Removed != 1 || out.Bytes != 12 {
			t.Errorf("the trial is told as %+v", out)
		}
		if c := out.Changes[2]; c.Info == nil || c.Info.Size != 6 || c.Info.Path != cove.WorkspacePath+"/made" || out.Changes[1].Info != nil {
			t.Errorf("the changes are told as %+v", out.Changes)
		}
		same(t, "what the record says", r.get(p, id).Trial, cove.TrialOpen)
		same(t, "a file in the layer", r.read(p, id, "f"), "newer\n")
		r.sh(p, id, "echo later > later")
		again, err := p.Trials(id).Get(r.ctx)
		r.must(err, "get")
		same(t, "what it changed by now", told(again), []string{"modified f", "removed g", "created later", "created made"})
		if !again.Open || again.Execution == nil || string(again.Execution.Stdout.Data) != "done\n" {
			t.Errorf("an open trial is told as %+v", again)
		}
		if commit {
			r.must(p.Trials(id).Commit(r.ctx), "commit")
			same(t, "the files after a commit", r.sh(p, id, "ls; cat f"), "f\nlater\nmade\nnewer\n")
		} else {
			r.must(p.Trials(id).Discard(r.ctx), "discard")
			same(t, "the files after a discard", r.sh(p, id, "ls; cat f"), "f\ng\nold\n")
		}
		same(t, "what the record says at the end", r.get(p, id).Trial, cove.TrialState(""))
		_, err = p.Trials(id).Get(r.ctx)
		wantCode(t, err, cove.NotFound)
		wantCode(t, p.Trials(id).Commit(r.ctx), cove.NotFound)
		wantCode(t, p.Trials(id).Discard(r.ctx), cove.NotFound)
	}
}

// trialBefore: the old content of a file can be read while the trial is open.
func trialBefore(t *testing.T, s *suite) {
	r, p, id := s.trialRig(t)
	_, err := p.Trials(id).Before(r.ctx, "f")
	wantCode(t, err, cove.NotFound)
	r.write(p, id, "\xff", "odd\xff")
	r.try(p, id, trialLine, cove.ThenKeep)
	r.write(p, id, "\xff", "changed")
	for name, want := range map[string]string{"f": "old\n", "g": "gone\n", cove.WorkspacePath + "/./f": "old\n", "\xff": "odd\xff"} {
		got, err := p.Trials(id).Before(r.ctx, name)
		r.must(err, "before "+name)
		same(t, "what "+name+" held", string(got), want)
	}
	for name, code := range map[string]cove.Code{
		"made": cove.NotFound, "f/below": cove.NotFound, "": cove.Invalid, ".": cove.Invalid, "/tmp/f": cove.Invalid, "../../etc/passwd": cove.Invalid, "a\x00b": cove.Invalid,
	} {
		_, err := p.Trials(id).Before(r.ctx, name)
		wantCode(t, err, code)
	}
	reader := r.as(cove.Principal{Name: "reader", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeExec}})
	_, err = reader.Trials(id).Before(r.ctx, "f")
	wantCode(t, err, cove.Denied)
	r.must(p.Trials(id).Discard(r.ctx), "discard")
	_, err = p.Trials(id).Before(r.ctx, "f")
	wantCode(t, err, cove.NotFound)
}

func trialEndedAtOnce(t *testing.T, s *suite) {
	r, p, id := s.trialRig(t)
	for _, c := range []struct {
		line      string
		then      cove.TrialEnd
		committed bool
	}{
		{"echo a >> f", cove.ThenDiscard, false},
		{"echo a >> f", cove.ThenCommit, true},
		{"echo b >> f; exit 3", cove.ThenCommitOnSuccess, false},
		{"echo b >> f; kill -9 $$", cove.ThenCommitOnSuccess, false},
		{"echo b >> f", cove.ThenCommitOnSuccess, true},
		{"echo c >> f; exit 3", cove.ThenCommit, true},
	} {
		before := r.read(p, id, "f")
		out := r.try(p, id, c.line, c.then)
		if out.Open || out.Committed != c.committed || out.Modified != 1 {
			t.Errorf("%s, %s: %+v", c.line, c.then, out)
		}
		if kept := r.read(p, id, "f") != before; kept != c.committed {
			t.Errorf("%s, %s: the change is kept: %v", c.line, c.then, kept)
		}
		same(t, "what the record says", r.get(p, id).Trial, cove.TrialState(""))
	}
	same(t, "the file in the end", r.read(p, id, "f"), "old\na\nb\nc\n")
}

func trialOneAtATime(t *testing.T, s *suite) {
	r, p, id := s.trialRig(t)
	r.try(p, id, "echo a > a", cove.ThenKeep)
	_, err := p.Trials(id).Run(r.ctx, cove.TrialRequest{ExecRequest: cove.ExecRequest{Line: "echo b > b"}})
	wantReason(t, err, cove.Conflict, cove.ReasonTrialOpen)
	wantRemedy(t, err)
	out, err := p.Trials(id).Get(r.ctx)
	r.must(err, "get")
	same(t, "what the first one changed", told(out), []string{"created a"})
}

// trialHolds: what would save the files, or keep them without their sandbox,
// waits for a decision.
func trialHolds(t *testing.T, s *suite) {
	r, p, id := s.trialRig(t)
	powers := r.capabilities().Powers
	r.try(p, id, trialLine, cove.ThenKeep)
	_, err := p.Sessions().Stop(r.ctx, id)
	wantReason(t, err, cove.Conflict, cove.ReasonTrialOpen)
	if slices.Contains(powers, cove.PowerSnapshot) {
		_, err = p.Snapshots().Snapshot(r.ctx, id, cove.SnapshotRequest{})
		wantReason(t, err, cove.Conflict, cove.ReasonTrialOpen)
		_, err = p.Sessions().Close(r.ctx, id, true)
		wantReason(t, err, cove.Conflict, cove.ReasonTrialOpen)
	}
	if slices.Contains(powers, cove.PowerFork) {
		_, err = p.Snapshots().Fork(r.ctx, id, cove.ForkRequest{})
		wantReason(t, err, cove.Conflict, cove.ReasonTrialOpen)
	}
	if slices.Contains(powers, cove.PowerPause) {
		_, err = p.Snapshots().Pause(r.ctx, id)
		r.must(err, "pause")
		wantReason(t, p.Trials(id).Commit(r.ctx), cove.Conflict, cove.ReasonSessionPaused)
		out, err := p.Trials(id).Get(r.ctx)
		r.must(err, "get while paused")
		same(t, "the changes while paused", len(out.Changes), 3)
		_, err = p.Snapshots().Resume(r.ctx, id)
		r.must(err, "resume")
	}
	same(t, "the session", r.get(p, id).State, cove.Running)
	r.must(p.Trials(id).Discard(r.ctx), "discard")
	r.stop(p, id)
	_, err = p.Trials(id).Run(r.ctx, cove.TrialRequest{ExecRequest: cove.ExecRequest{Line: "true"}})
	wantReason(t, err, cove.Conflict, cove.ReasonSessionStopped)
	_, err = p.Sessions().Start(r.ctx, id)
	r.must(err, "start")
	same(t, "the files", r.sh(p, id, "ls; cat f"), "f\ng\nold\n")
}

func trialPrograms(t *testing.T, s *suite) {
	r, p, id := s.trialRig(t)
	pid := r.idle(p, id)
	req := cove.TrialRequest{ExecRequest: cove.ExecRequest{Line: trialLine}}
	_, err := p.Trials(id).Run(r.ctx, req)
	wantCode(t, err, cove.Conflict)
	if text := cove.MessageOf(err); !strings.Contains(text, fmt.Sprintf("process %d (cat)", pid)) {
		t.Errorf("the programs in the way are told as %q", text)
	}
	r.must(p.Processes(id).Input(r.ctx, pid, nil, true), "end it")
	r.wait(p, id, pid)
	r.try(p, id, trialLine, cove.ThenKeep)
	pid = r.idle(p, id)
	wantCode(t, p.Trials(id).Commit(r.ctx), cove.Conflict)
	wantCode(t, p.Trials(id).Discard(r.ctx), cove.Conflict)
	same(t, "the trial goes on", r.get(p, id).Trial, cove.TrialOpen)
	r.must(p.Processes(id).Input(r.ctx, pid, nil, true), "end it")
	r.wait(p, id, pid)
	r.must(p.Trials(id).Commit(r.ctx), "commit")
	if code := r.h.Extras().Code; code != nil {
		_, err := p.Contexts(id).Run(r.ctx, cove.CodeRequest{Language: code.Name, Code: code.Assign})
		r.must(err, "run code")
		_, err = p.Trials(id).Run(r.ctx, req)
		wantCode(t, err, cove.Conflict)
	}
}

func trialLeftBehind(t *testing.T, s *suite) {
	r, p, id := s.trialRig(t)
	out := r.try(p, id, "(sleep 1000; echo late > late) & echo first > first", cove.ThenCommit)
	same(t, "what it changed", told(out), []string{"created first"})
	if u, err := p.Sessions().Usage(r.ctx, id); err != nil || u.PIDs > 1 {
		t.Errorf("%d processes are left: %v", u.PIDs, err)
	}
}

func trialBlocked(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerTrial)
	p := r.user("acme")
	id := r.session(p, cove.Spec{Policy: "agent-bash"}).ID
	out := r.try(p, id, "rm -rf x", cove.ThenCommit)
	if x := out.Execution; x == nil || x.Outcome != cove.Blocked || x.Refusal == nil || out.Open || out.Committed || len(out.Changes) > 0 {
		t.Errorf("a blocked program is told as %+v", out)
	}
	same(t, "what the record says", r.get(p, id).Trial, cove.TrialState(""))
	r.try(p, id, "echo fine", cove.ThenDiscard)
}

func trialStreams(t *testing.T, s *suite) {
	r, p, id := s.trialRig(t)
	var got strings.Builder
	out, err := p.Trials(id).Run(r.ctx, cove.TrialRequest{Then: cove.ThenCommit, ExecRequest: cove.ExecRequest{
		Argv: []string{"tee", "copy"}, Dir: "/workspace", Stdin: onlyReader{strings.NewReader("through")},
		OnOutput: func(c cove.Chunk) { got.Write(c.Data) },
	}})
	r.must(err, "run")
	same(t, "the output as it came", got.String(), "through")
	same(t, "the output in the answer", string(out.Execution.Stdout.Data), "through")
	same(t, "what it changed", told(out), []string{"created copy"})
	out, err = p.Trials(id).Run(r.ctx, cove.TrialRequest{Then: cove.ThenDiscard, ExecRequest: cove.ExecRequest{
		Line: `cat > f; echo "$A"`, Stdin: strings.NewReader("whole"), Env: map[string]string{"A": "b"},
	}})
	r.must(err, "run")
	same(t, "the output", string(out.Execution.Stdout.Data), "b\n")
	same(t, "the change", told(out), []string{"modified f"})
}

// onlyReader hides what else a reader can do, so that its input is streamed.
type onlyReader struct{ r *strings.Reader }

func (o onlyReader) Read(b []byte) (int, error) { return o.r.Read(b) }

func trialCannot(t *testing.T, s *suite) {
	r, p, id := s.trialRig(t)
	for name, req := range map[string]cove.TrialRequest{
		"no command":     {},
		"unknown end":    {ExecRequest: cove.ExecRequest{Line: "true"}, Then: "perhaps"},
		"a terminal":     {ExecRequest: cove.ExecRequest{Line: "true", TTY: &cove.WindowSize{Cols: 80, Rows: 24}}},
		"no directory":   {ExecRequest: cove.ExecRequest{Line: "true", Dir: "/workspace/none"}},
		"a bad variable": {ExecRequest: cove.ExecRequest{Line: "true", Env: map[string]string{"=": ""}}},
	} {
		_, err := p.Trials(id).Run(r.ctx, req)
		if cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%s: %v", name, err)
		}
		same(t, "what the record says after "+name, r.get(p, id).Trial, cove.TrialState(""))
	}
	r.try(p, id, "true", cove.ThenDiscard)
}

// trialCallerGone: a program whose caller went away leaves nothing.
func trialCallerGone(t *testing.T, s *suite) {
	r, p, id := s.trialRig(t)
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	began := make(chan struct{})
	ended := async(func() (*cove.TrialResult, error) {
		return p.Trials(id).Run(ctx, cove.TrialRequest{ExecRequest: cove.ExecRequest{
			Line: "echo half > f; echo up; sleep 1000", OnOutput: func(cove.Chunk) { close(began) },
		}, Then: cove.ThenCommit})
	})
	receive(r, began, "the program's first output")
	wantCode(t, p.Trials(id).Commit(r.ctx), cove.Conflict)
	cancel()
	wantCode(t, receive(r, ended, "the end of the run").err, cove.Canceled)
	r.eventually("the trial is gone", func() bool { return r.get(p, id).Trial == "" })
	same(t, "the file", r.read(p, id, "f"), "old\n")
}

func trialMany(t *testing.T, s *suite) {
	r, p, id := s.trialRig(t)
	const n = 300
	out := r.try(p, id, fmt.Sprintf("mkdir d; for i in $(seq 1 %d); do echo $i > d/$i; done", n), cove.ThenDiscard)
	if out.Created != n+1 || len(out.Changes) != n+1 || out.Truncated {
		t.Errorf("%d files are told as %d, with %d changes", n, out.Created, len(out.Changes))
	}
}

func trialOddNames(t *testing.T, s *suite) {
	r, p, id := s.trialRig(t)
	r.try(p, id, "true", cove.ThenKeep)
	odd := []string{"\xff", "a\nb", "é"}
	for _, name := range odd {
		r.write(p, id, name, "x")
	}
	out, err := p.Trials(id).Get(r.ctx)
	r.must(err, "get")
	for _, name := range odd {
		found := false
		for _, c := range out.Changes {
			found = found || c.Path == cove.WorkspacePath+"/"+name && c.Kind == cove.Created && c.Info.Path == c.Path
		}
		if !found {
			t.Errorf("%q is not told of: %q", name, told(out))
		}
	}
}

func trialClose(t *testing.T, s *suite) {
	r, p, id := s.trialRig(t)
	r.try(p, id, trialLine, cove.ThenKeep)
	r.closeNow(p, id)
	_, err := p.Trials(id).Get(r.ctx)
	wantReason(t, err, cove.NotFound, cove.ReasonSessionClosed)
}

// trialRestart: an open trial is as open after a restart, or said to be lost.
func trialRestart(t *testing.T, s *suite) {
	r, p, id := s.trialRig(t)
	r.needs(cove.PowerAttach)
	r.try(p, id, trialLine, cove.ThenKeep)
	r.restart()
	p = r.user("acme")
	same(t, "what the record says", r.get(p, id).Trial, cove.TrialOpen)
	out, err := p.Trials(id).Get(r.ctx)
	r.must(err, "get")
	same(t, "what it changed", told(out), []string{"modified f", "removed g", "created made"})
	if out.Execution != nil || !out.Open {
		t.Errorf("after a restart the trial is told as %+v", out)
	}
	_, err = p.Sessions().Stop(r.ctx, id)
	wantReason(t, err, cove.Conflict, cove.ReasonTrialOpen)
	r.must(p.Trials(id).Discard(r.ctx), "discard")
	same(t, "the files", r.sh(p, id, "ls; cat f"), "f\ng\nold\n")
}

func trialLacking(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	if slices.Contains(r.capabilities().Powers, cove.PowerTrial) {
		t.Skip("the provider has the power")
	}
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	_, err := p.Trials(id).Run(r.ctx, cove.TrialRequest{ExecRequest: cove.ExecRequest{Line: "true"}})
	wantCode(t, err, cove.Unsupported)
	_, err = p.Trials(id).Get(r.ctx)
	wantCode(t, err, cove.NotFound)
}
