package platformtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func execCases() []testCase {
	return []testCase{
		{"line_and_argv", lineAndArgv},
		{"exit_codes", exitCodes},
		{"missing_program", missingProgram},
		{"env", execEnv},
		{"dir", execDir},
		{"stdin", execStdin},
		{"timeout", execTimeout},
		{"default_timeout", defaultTimeout},
		{"on_output", onOutput},
		{"many_at_once", manyAtOnce},
		{"caller_goes_away", callerGoesAway},
	}
}

func lineAndArgv(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	made := r.session(p, cove.Spec{})
	for _, c := range []struct {
		req            cove.ExecRequest
		stdout, stderr string
	}{
		{cove.ExecRequest{Line: "echo hello"}, "hello\n", ""},
		{cove.ExecRequest{Line: "echo a; echo b >&2; echo c | cat"}, "a\nc\n", "b\n"},
		{cove.ExecRequest{Argv: []string{"echo", "a  b", "$HOME", ";", "echo", "c"}}, "a  b $HOME ; echo c\n", ""},
		{cove.ExecRequest{Line: "true"}, "", ""},
	} {
		e := r.exec(p, made.ID, c.req)
		if e.Outcome != cove.Exited || e.ExitCode != 0 || e.OutputID != "" || e.Refusal != nil || e.Provider != made.Provider {
			t.Errorf("%+v ended as %+v", c.req, e)
		}
		same(t, "stdout", e.Stdout, output(c.stdout))
		same(t, "stderr", e.Stderr, output(c.stderr))
	}
}

// output is a stream that was short enough to come whole.
func output(text string) cove.Output {
	return cove.Output{Data: []byte(text), Bytes: int64(len(text)), Lines: int64(strings.Count(text, "\n"))}
}

func exitCodes(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	for _, code := range []int{0, 1, 42, 255} {
		e := r.exec(p, id, cove.ExecRequest{Line: fmt.Sprintf("exit %d", code)})
		if e.Outcome != cove.Exited || e.ExitCode != code || e.Signal != "" {
			t.Errorf("exit %d is told as %+v", code, e.Result)
		}
	}
}

func missingProgram(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	for _, req := range []cove.ExecRequest{{Argv: []string{"no-such-program"}}, {Line: "no-such-program"}} {
		e := r.exec(p, id, req)
		if e.Outcome != cove.Exited || e.ExitCode != 127 || !strings.Contains(string(e.Stderr.Data), "no-such-program") {
			t.Errorf("a missing program is told as %+v with stderr %q", e.Result, e.Stderr.Data)
		}
	}
}

func execEnv(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{Env: map[string]string{"A": "session", "B": "again"}}).ID
	e := r.exec(p, id, cove.ExecRequest{Line: `echo "$A $B"`, Env: map[string]string{"B": "a request's = \"own\""}})
	same(t, "stdout", string(e.Stdout.Data), "session a request's = \"own\"\n")
	same(t, "stdout of the next program", r.sh(p, id, `echo "$A $B"`), "session again\n")
}

func execDir(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.must(p.Files(id).Mkdir(r.ctx, "sub"), "mkdir")
	r.exec(p, id, cove.ExecRequest{Line: "echo x > made", Dir: cove.WorkspacePath + "/sub"})
	same(t, "a file made in a directory", r.read(p, id, "sub/made"), "x\n")
	r.sh(p, id, "echo y > here")
	same(t, "a file made where programs start", r.read(p, id, cove.WorkspacePath+"/here"), "y\n")
}

func execStdin(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	text := strings.Repeat("a line of input\n", 500)
	e := r.exec(p, id, cove.ExecRequest{Line: "cat", Stdin: strings.NewReader(text)})
	same(t, "what cat made of its input", string(e.Stdout.Data), text)
	same(t, "cat without input", r.sh(p, id, "cat"), "")
}

func execTimeout(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	e := r.exec(p, id, cove.ExecRequest{Line: "echo before; sleep 600; echo after", Limits: cove.Limits{Wall: 300 * time.Millisecond}})
	if e.Outcome != cove.TimedOut || e.ExitCode != -1 {
		t.Errorf("a program over its time is told as %+v", e.Result)
	}
	same(t, "what it wrote in time", string(e.Stdout.Data), "before\n")
	same(t, "the next program", r.sh(p, id, "echo fine"), "fine\n")
}

func defaultTimeout(t *testing.T, s *suite) {
	r := s.start(t, Options{ExecTimeout: 200 * time.Millisecond})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	if e := r.exec(p, id, cove.ExecRequest{Line: "sleep 600"}); e.Outcome != cove.TimedOut || e.ExitCode != -1 {
		t.Errorf("a program over the default time is told as %+v", e.Result)
	}
}

// onOutput: a listener gets every byte once, numbered without gaps, also what
// the answer's budget cuts.
func onOutput(t *testing.T, s *suite) {
	r := s.start(t, Options{OutputBudget: cove.KiB})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	var next int64
	text := map[cove.Stream]string{}
	e := r.exec(p, id, cove.ExecRequest{Line: "echo one; echo two >&2; seq 1 2000; echo end >&2", OnOutput: func(c cove.Chunk) {
		if c.Offset != next {
			t.Errorf("a chunk starts at %d, the one before ended at %d", c.Offset, next)
		}
		next = c.Offset + int64(len(c.Data))
		text[c.Stream] += string(c.Data)
	}})
	same(t, "stdout", text[cove.Stdout], "one\n"+seq(2000))
	same(t, "stderr", text[cove.Stderr], "two\nend\n")
	if next != e.Stdout.Bytes+e.Stderr.Bytes {
		t.Errorf("the listener got %d bytes, the answer counts %d and %d", next, e.Stdout.Bytes, e.Stderr.Bytes)
	}
}

// seq is what the program of that name writes.
func seq(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

func manyAtOnce(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			want := fmt.Sprintf("program %d\n", n)
			e, err := p.Processes(id).Exec(r.ctx, cove.ExecRequest{Line: "cat", Stdin: strings.NewReader(want)})
			if err != nil || string(e.Stdout.Data) != want {
				t.Errorf("program %d gave %+v, %v", n, e, err)
			}
		})
	}
	wg.Wait()
	r.eventually("the session is idle again", func() bool { return !r.get(p, id).Busy })
}

// callerGoesAway: a foreground program ends with its caller. The journal tells
// when that is done, so nothing has to be waited out.
func callerGoesAway(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	before, err := p.Sessions().Usage(r.ctx, id)
	r.must(err, "usage")
	ctx, leave := context.WithCancel(r.ctx)
	defer leave()
	ready := make(chan struct{}, 1)
	done := async(func() (*cove.Execution, error) {
		return p.Processes(id).Exec(ctx, cove.ExecRequest{Line: "echo ready; sleep 600; echo late > marker", OnOutput: func(cove.Chunk) {
			select {
			case ready <- struct{}{}:
			default:
			}
		}})
	})
	receive(r, ready, "the first output")
	if !r.get(p, id).Busy {
		t.Error("a session with a foreground program is not busy")
	}
	leave()
	if a := receive(r, done, "the answer of Exec"); a.err == nil && a.value.Outcome != cove.Killed || a.err != nil && cove.CodeOf(a.err) != cove.Canceled {
		t.Errorf("Exec of a caller that went away answered %+v, %v", a.value, a.err)
	}
	r.outcome(cove.EventFilter{Session: id, Kind: string(cove.ProcessExec)})
	r.eventually("the session is idle after its caller went away", func() bool { return !r.get(p, id).Busy })
	after, err := p.Sessions().Usage(r.ctx, id)
	r.must(err, "usage")
	if after.PIDs > before.PIDs {
		t.Errorf("%d processes were there before the program, %d after its caller went away", before.PIDs, after.PIDs)
	}
	_, err = p.Files(id).Stat(r.ctx, "marker")
	wantCode(t, err, cove.NotFound)
}

// outcome waits until the journal tells how an action went.
func (r *rig) outcome(f cove.EventFilter) cove.Event {
	r.t.Helper()
	f.Follow = true
	for e, err := range r.admin().Admin().Events(r.ctx, f) {
		r.must(err, "follow the journal")
		if e.Phase == cove.AfterIt {
			return e
		}
	}
	r.t.Fatalf("the journal ended without an outcome for %+v", f)
	return cove.Event{}
}
