package platformtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func backgroundCases() []testCase {
	return []testCase{
		{"start_list_wait", startListWait},
		{"named", namedPrograms},
		{"outlives_its_caller", outlivesItsCaller},
		{"input", backgroundInput},
		{"reconnect", reconnect},
		{"two_followers", twoFollowers},
		{"follower_leaves", followerLeaves},
		{"stdin_then_input", stdinThenInput},
		{"timeout", backgroundTimeout},
		{"waiter_leaves", waiterLeaves},
		{"unknown_pid", unknownPID},
		{"output_budget", backgroundBudget},
	}
}

func startListWait(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	long := "echo " + strings.Repeat("x", 500)
	info, err := p.Processes(id).Start(r.ctx, cove.ExecRequest{Line: long})
	r.must(err, "start")
	if info.PID <= 0 || info.StartedAt.IsZero() || info.TTY || !strings.HasPrefix(info.Command, long[:100]) || len(info.Command) > 210 {
		t.Errorf("the started program is %+v", info)
	}
	e := r.wait(p, id, info.PID)
	if e.PID != info.PID || e.Outcome != cove.Exited || e.ExitCode != 0 || string(e.Stdout.Data) != long[5:]+"\n" {
		t.Errorf("the program ended as %+v", e)
	}
	second := r.idle(p, id)
	if second <= info.PID {
		t.Errorf("the pids are %d and then %d", info.PID, second)
	}
	list := all(r, p.Processes(id).List(r.ctx))
	if len(list) != 2 || list[0].PID != info.PID || list[1].PID != second {
		t.Fatalf("the list is %+v", list)
	}
	if list[0].Running || list[0].Result == nil || !list[1].Running || list[1].Result != nil {
		t.Errorf("of an ended and a running program the list says %+v", list)
	}
	r.must(p.Processes(id).Input(r.ctx, second, nil, true), "end the input")
	r.wait(p, id, second)
	again := r.wait(p, id, info.PID)
	same(t, "what Wait says the second time", again, e)
}

func namedPrograms(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	argv := []string{"sh", "-c", "true", strings.Repeat("x", 5000), "never shown"}
	info, err := p.Processes(id).Start(r.ctx, cove.ExecRequest{Argv: argv, Dir: cove.WorkspacePath, Tag: "build"})
	r.must(err, "start")
	line := r.background(p, id, cove.ExecRequest{Line: "true"})
	r.wait(p, id, info.PID)
	r.wait(p, id, line)
	list := all(r, p.Processes(id).List(r.ctx))
	if len(list) != 2 {
		t.Fatalf("the list is %+v", list)
	}
	for _, got := range []cove.ProcessInfo{*info, list[0]} {
		if got.Tag != "build" || got.Dir != cove.WorkspacePath || len(got.Argv) != 4 || got.Argv[0] != "sh" ||
			len(strings.Join(got.Argv, " ")) > 4<<10 || !strings.HasPrefix(got.Argv[3], "xxx") {
			t.Errorf("the program is told as %+v", got)
		}
	}
	if got := list[1]; got.Tag != "" || got.Dir != "" || len(got.Argv) > 0 {
		t.Errorf("a line without a name is told as %+v", got)
	}
	_, err = p.Processes(id).Exec(r.ctx, cove.ExecRequest{Line: "true", Tag: "build"})
	wantField(t, err, cove.Invalid, "tag")
}

// outlivesItsCaller: the context of Start bounds the starting alone.
func outlivesItsCaller(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	ctx, leave := context.WithCancel(r.ctx)
	info, err := p.Processes(id).Start(ctx, cove.ExecRequest{Line: "cat", KeepStdin: true})
	r.must(err, "start")
	leave()
	r.must(p.Processes(id).Input(r.ctx, info.PID, []byte("still here\n"), true), "input")
	if e := r.wait(p, id, info.PID); e.Outcome != cove.Exited || string(e.Stdout.Data) != "still here\n" {
		t.Errorf("a background program whose caller went away ended as %+v", e)
	}
}

func backgroundInput(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	pid := r.idle(p, id)
	for _, text := range []string{"one\n", "", "two\n", strings.Repeat("z", 8000) + "\n"} {
		r.must(p.Processes(id).Input(r.ctx, pid, []byte(text), false), "input")
	}
	r.must(p.Processes(id).Input(r.ctx, pid, []byte("end"), true), "the last input")
	same(t, "what cat wrote", string(r.wait(p, id, pid).Stdout.Data), "one\ntwo\n"+strings.Repeat("z", 8000)+"\nend")
	wantCode(t, p.Processes(id).Input(r.ctx, pid, []byte("late"), false), cove.NotFound, cove.Conflict)
}

// take reads a program's output from its start until n bytes have come, then
// leaves.
func (r *rig) take(p cove.Platform, id cove.ID, pid cove.PID, n int) string {
	r.t.Helper()
	var text strings.Builder
	for c, err := range p.Processes(id).Connect(r.ctx, pid, 0) {
		r.must(err, "connect")
		if c.Offset != int64(text.Len()) {
			r.t.Fatalf("a chunk starts at %d, want %d", c.Offset, text.Len())
		}
		text.Write(c.Data)
		if text.Len() >= n {
			break
		}
	}
	return text.String()
}

// joined is what a follower got, all of it.
func joined(r *rig, ch <-chan answer[[]cove.Chunk], offset int64) string {
	r.t.Helper()
	a := receive(r, ch, "the end of the output")
	r.must(a.err, "connect")
	var text strings.Builder
	for _, c := range a.value {
		if c.Offset != offset+int64(text.Len()) {
			r.t.Fatalf("a chunk starts at %d, want %d", c.Offset, offset+int64(text.Len()))
		}
		text.Write(c.Data)
	}
	return text.String()
}

func reconnect(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	pid := r.idle(p, id)
	r.must(p.Processes(id).Input(r.ctx, pid, []byte("one\n"), false), "input")
	same(t, "the first part", r.take(p, id, pid, 4), "one\n")
	r.must(p.Processes(id).Input(r.ctx, pid, []byte("two\n"), false), "input")
	rest := r.follow(p, id, pid, 4)
	r.must(p.Processes(id).Input(r.ctx, pid, []byte("three\n"), true), "input")
	same(t, "the rest", joined(r, rest, 4), "two\nthree\n")
	r.wait(p, id, pid)
	same(t, "all of it after the end", joined(r, r.follow(p, id, pid, 0), 0), "one\ntwo\nthree\n")
	same(t, "from the middle of a line", joined(r, r.follow(p, id, pid, 6), 6), "o\nthree\n")
	same(t, "from the very end", joined(r, r.follow(p, id, pid, 14), 14), "")
	_, err := collect(p.Processes(id).Connect(r.ctx, pid, -1))
	wantCode(t, err, cove.Invalid)
}

func twoFollowers(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	pid := r.idle(p, id)
	one, two := r.follow(p, id, pid, 0), r.follow(p, id, pid, 0)
	var want strings.Builder
	for _, line := range strings.SplitAfter(seq(50), "\n") {
		want.WriteString(line)
		r.must(p.Processes(id).Input(r.ctx, pid, []byte(line), false), "input")
	}
	r.must(p.Processes(id).Input(r.ctx, pid, nil, true), "end the input")
	same(t, "the first follower", joined(r, one, 0), want.String())
	same(t, "the second follower", joined(r, two, 0), want.String())
}

func followerLeaves(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	pid := r.idle(p, id)
	ctx, leave := context.WithCancel(r.ctx)
	gone := async(func() ([]cove.Chunk, error) { return collect(p.Processes(id).Connect(ctx, pid, 0)) })
	leave()
	if a := receive(r, gone, "the end of a follower whose context ended"); a.err != nil && cove.CodeOf(a.err) != cove.Canceled {
		t.Errorf("a follower that left was told %v", a.err)
	}
	r.must(p.Processes(id).Input(r.ctx, pid, []byte("on\n"), true), "input")
	same(t, "the program after its follower left", string(r.wait(p, id, pid).Stdout.Data), "on\n")
}

func stdinThenInput(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	kept := r.background(p, id, cove.ExecRequest{Line: "cat", Stdin: strings.NewReader("given "), KeepStdin: true})
	same(t, "the given input", r.take(p, id, kept, 6), "given ")
	r.must(p.Processes(id).Input(r.ctx, kept, []byte("typed"), true), "input")
	same(t, "both inputs", string(r.wait(p, id, kept).Stdout.Data), "given typed")
	ended := r.background(p, id, cove.ExecRequest{Line: "cat", Stdin: strings.NewReader("given")})
	same(t, "only the given input", string(r.wait(p, id, ended).Stdout.Data), "given")
}

func backgroundTimeout(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	pid := r.background(p, id, cove.ExecRequest{Line: "sleep 600", Limits: cove.Limits{Wall: 200 * time.Millisecond}})
	if e := r.wait(p, id, pid); e.Outcome != cove.TimedOut || e.ExitCode != -1 {
		t.Errorf("a background program over its time is told as %+v", e.Result)
	}
}

func waiterLeaves(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	pid := r.idle(p, id)
	ctx, leave := context.WithCancel(r.ctx)
	leave()
	_, err := p.Processes(id).Wait(ctx, pid)
	wantCode(t, err, cove.Canceled)
	r.must(p.Processes(id).Input(r.ctx, pid, []byte("on\n"), true), "input")
	same(t, "the program after its waiter left", string(r.wait(p, id, pid).Stdout.Data), "on\n")
}

func unknownPID(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	programs := p.Processes(r.session(p, cove.Spec{}).ID)
	for _, pid := range []cove.PID{1, 0, -1, 1 << 30} {
		_, err := programs.Wait(r.ctx, pid)
		wantCode(t, err, cove.NotFound, cove.Invalid)
		_, err = collect(programs.Connect(r.ctx, pid, 0))
		wantCode(t, err, cove.NotFound, cove.Invalid)
		wantCode(t, programs.Input(r.ctx, pid, nil, true), cove.NotFound, cove.Invalid)
		wantCode(t, programs.Signal(r.ctx, pid, "TERM"), cove.NotFound, cove.Invalid)
		wantCode(t, programs.Resize(r.ctx, pid, cove.WindowSize{Cols: 1, Rows: 1}), cove.NotFound, cove.Invalid)
	}
}

func backgroundBudget(t *testing.T, s *suite) {
	r := s.start(t, Options{OutputBudget: cove.KiB})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	pid := r.background(p, id, cove.ExecRequest{Line: "seq 1 3000"})
	e := r.wait(p, id, pid)
	if !e.Stdout.Truncated || e.Stdout.Bytes != int64(len(seq(3000))) || e.Stdout.Lines != 3000 || len(e.Stdout.Data) > 1300 {
		t.Errorf("%d bytes of %d in the answer, truncated %t", len(e.Stdout.Data), e.Stdout.Bytes, e.Stdout.Truncated)
	}
	same(t, "the kept output", r.pages(p, id, e.OutputID, cove.OutputRange{}), seq(3000))
	same(t, "what a follower gets", joined(r, r.follow(p, id, pid, 0), 0), seq(3000))
}
