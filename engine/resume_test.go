package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// restart ends an engine and its provider, and starts others on the same world.
func (w *world) restart(e *engine.Engine) cove.Platform {
	w.t.Helper()
	w.shut(e, w.provider)
	return w.open().As(boss)
}

func background(t *testing.T, p cove.Platform, id cove.ID, req cove.ExecRequest) *cove.ProcessInfo {
	t.Helper()
	info, err := p.Processes(id).Start(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// follow reads a program's output from an offset until it holds a text, or to
// the end if that is "".
func follow(t *testing.T, p cove.Platform, id cove.ID, pid cove.PID, offset int64, until string) string {
	t.Helper()
	var text strings.Builder
	for c, err := range p.Processes(id).Connect(t.Context(), pid, offset) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Offset != offset+int64(text.Len()) {
			t.Errorf("a chunk is at %d, want %d", c.Offset, offset+int64(text.Len()))
		}
		text.Write(c.Data)
		if until != "" && strings.Contains(text.String(), until) {
			break
		}
	}
	return text.String()
}

func processes(t *testing.T, p cove.Platform, id cove.ID) []cove.ProcessInfo {
	t.Helper()
	var list []cove.ProcessInfo
	for info, err := range p.Processes(id).List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, info)
	}
	return list
}

func TestBackgroundProgramsOutliveTheServer(t *testing.T) {
	w := newWorld(t)
	first := w.open()
	p := first.As(boss)
	s := mustOpen(t, p, cove.Spec{})
	going := background(t, p, s.ID, cove.ExecRequest{
		Line: `while read l; do echo "got $l"; echo err >&2; done; exit 5`, KeepStdin: true, Limits: cove.Limits{Wall: time.Hour},
	})
	long := background(t, p, s.ID, cove.ExecRequest{Line: "seq 1 60000; while [ ! -e go ]; do sleep 0.01; done; echo end"})
	done := background(t, p, s.ID, cove.ExecRequest{Line: "echo done; exit 7"})
	if _, err := p.Processes(s.ID).Wait(t.Context(), done.PID); err != nil {
		t.Fatal(err)
	}
	if err := p.Processes(s.ID).Input(t.Context(), going.PID, []byte("a\n"), false); err != nil {
		t.Fatal(err)
	}
	before := follow(t, p, s.ID, going.PID, 0, "err\n")
	follow(t, p, s.ID, long.PID, 0, "60000\n")
	table := processes(t, p, s.ID)

	p = w.restart(first)
	if diff := cmp.Diff(table, processes(t, p, s.ID)); diff != "" {
		t.Errorf("the table after the restart (-before +after):\n%s", diff)
	}
	if got, err := p.Sessions().Get(t.Context(), s.ID); err != nil || !got.Busy || got.State != cove.Running {
		t.Errorf("a session with a running program is %+v (%v), want it busy", got, err)
	}
	if err := p.Processes(s.ID).Input(t.Context(), going.PID, []byte("b\n"), true); err != nil {
		t.Fatal(err)
	}
	x, err := p.Processes(s.ID).Wait(t.Context(), going.PID)
	if err != nil || x.ExitCode != 5 || x.Outcome != cove.Exited || x.PID != going.PID {
		t.Errorf("%+v, %v", x, err)
	}
	if got := follow(t, p, s.ID, going.PID, int64(len(before)), ""); got != "got b\nerr\n" {
		t.Errorf("from offset %d on the output is %q", len(before), got)
	}
	sh(t, p, s.ID, "touch go")
	if got := follow(t, p, s.ID, long.PID, 0, ""); !strings.HasPrefix(got, "1\n2\n") || !strings.HasSuffix(got, "\n60000\nend\n") {
		t.Errorf("the long output is %d bytes", len(got))
	}
	page, err := p.Processes(s.ID).Output(t.Context(), long.OutputID, cove.OutputRange{Grep: "^54321$"})
	if err != nil || string(page.Data) != "54321\n" {
		t.Errorf("%+v, %v", page, err)
	}
	x, err = p.Processes(s.ID).Wait(t.Context(), done.PID)
	if err != nil || x.ExitCode != 7 || string(x.Stdout.Data) != "done\n" {
		t.Errorf("a program that had ended is %+v, %v", x, err)
	}
	if next := background(t, p, s.ID, cove.ExecRequest{Line: "true"}); next.PID <= done.PID {
		t.Errorf("the next number is %d", next.PID)
	}
}

func TestTerminalsOutliveTheServer(t *testing.T) {
	w := newWorld(t)
	first := w.open()
	p := first.As(boss)
	s := mustOpen(t, p, cove.Spec{})
	tty := background(t, p, s.ID, cove.ExecRequest{Line: `stty -echo; echo ready; while read l; do stty size; done`, TTY: &cove.WindowSize{Cols: 80, Rows: 24}})
	follow(t, p, s.ID, tty.PID, 0, "ready\r\n")

	p = w.restart(first)
	if err := p.Processes(s.ID).Resize(t.Context(), tty.PID, cove.WindowSize{Cols: 132, Rows: 50}); err != nil {
		t.Fatal(err)
	}
	if err := p.Processes(s.ID).Input(t.Context(), tty.PID, []byte("\n"), false); err != nil {
		t.Fatal(err)
	}
	if got := follow(t, p, s.ID, tty.PID, 0, "50 132"); got != "ready\r\n50 132\r\n" {
		t.Errorf("got %q", got)
	}
	if err := p.Processes(s.ID).Signal(t.Context(), tty.PID, "KILL"); err != nil {
		t.Fatal(err)
	}
	if x, err := p.Processes(s.ID).Wait(t.Context(), tty.PID); err != nil || x.Outcome != cove.Killed {
		t.Errorf("%+v, %v", x, err)
	}
}

func TestWhoWaitsWhenTheServerStopsIsTold(t *testing.T) {
	w := newWorld(t)
	first := w.open()
	p := first.As(boss)
	s := mustOpen(t, p, cove.Spec{})
	going := background(t, p, s.ID, cove.ExecRequest{Line: "echo ready; cat", KeepStdin: true})
	follow(t, p, s.ID, going.PID, 0, "ready\n")
	answers := make(chan error, 2)
	go func() {
		_, err := p.Processes(s.ID).Wait(context.WithoutCancel(t.Context()), going.PID)
		answers <- err
	}()
	following := make(chan struct{})
	go func() {
		for _, err := range p.Processes(s.ID).Connect(context.WithoutCancel(t.Context()), going.PID, 0) {
			if err != nil {
				answers <- err
				return
			}
			close(following)
		}
		answers <- nil
	}()
	<-following
	again := w.restart(first)
	for range 2 {
		err := <-answers
		wantCode(t, err, cove.Unavailable, "")
		if !strings.Contains(cove.MessageOf(err), "shutting down") {
			t.Errorf("the message is %q", cove.MessageOf(err))
		}
	}
	if err := again.Processes(s.ID).Input(t.Context(), going.PID, []byte("x\n"), true); err != nil {
		t.Fatal(err)
	}
	if got := follow(t, again, s.ID, going.PID, 0, ""); got != "ready\nx\n" {
		t.Errorf("the program that ran on wrote %q", got)
	}
}

// TestLimitsCountFromTheStart has a program whose time runs out, before and
// after the restart.
func TestLimitsCountFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		open := func() (*engine.Engine, cove.Platform) {
			e, err := w.tryOpen()
			if err != nil {
				t.Fatal(err)
			}
			return e, e.As(boss)
		}
		first, p := open()
		s := mustOpen(t, p, cove.Spec{})
		short := background(t, p, s.ID, cove.ExecRequest{Line: "sleep 1000000", Limits: cove.Limits{Wall: time.Minute}})
		long := background(t, p, s.ID, cove.ExecRequest{Line: "sleep 1000000", Limits: cove.Limits{Wall: time.Hour}})
		wide := background(t, p, s.ID, cove.ExecRequest{Line: "while :; do echo 0123456789; sleep 60; done", Limits: cove.Limits{Output: 100}})
		<-time.After(30 * time.Second)
		w.shut(first, w.provider)
		<-time.After(30 * time.Minute)
		second, p := open()
		defer w.shut(second, w.provider)
		for pid, outcome := range map[cove.PID]cove.Outcome{short.PID: cove.TimedOut, wide.PID: cove.OutputLimit} {
			if x, err := p.Processes(s.ID).Wait(t.Context(), pid); err != nil || x.Outcome != outcome {
				t.Errorf("program %d ended as %+v (%v), want %s", pid, x, err, outcome)
			}
		}
		x, err := p.Processes(s.ID).Wait(t.Context(), long.PID)
		if err != nil || x.Outcome != cove.TimedOut || x.Wall < time.Hour || x.Wall > time.Hour+time.Second || time.Since(long.StartedAt) > time.Hour+time.Second {
			t.Errorf("after %s the result is %+v (%v)", time.Since(long.StartedAt), x, err)
		}
	})
}

func TestBusyAfterARestartDoesNotTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e, err := w.tryOpen()
		if err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, e.As(boss), cove.Spec{Idle: time.Minute, OnEnd: cove.EndClose})
		pr := background(t, e.As(boss), s.ID, cove.ExecRequest{Line: "sleep 600"})
		w.shut(e, w.provider)
		if e, err = w.tryOpen(); err != nil {
			t.Fatal(err)
		}
		defer func() { w.shut(e, w.provider) }()
		p := e.As(boss)
		if _, err := p.Processes(s.ID).Wait(t.Context(), pr.PID); err != nil {
			t.Fatal(err)
		}
		if st := state(t, p, s.ID); st != cove.Running {
			t.Errorf("the session is %s", st)
		}
		<-time.After(2 * time.Minute)
		_, err = p.Sessions().Get(t.Context(), s.ID)
		wantCode(t, err, cove.NotFound, cove.ReasonSessionExpired)
	})
}

// TestCPUTimeIsBookedOnce restarts around programs that have ended and that go on.
func TestCPUTimeIsBookedOnce(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	p := e.As(boss)
	s := mustOpen(t, p, cove.Spec{})
	spin := cove.ExecRequest{Line: "i=0; while [ $i -lt 300 ]; do i=$((i+1)); done"}
	var want time.Duration
	add := func(pid cove.PID) {
		x, err := p.Processes(s.ID).Wait(t.Context(), pid)
		if err != nil || x.CPU == 0 {
			t.Fatalf("%+v, %v", x, err)
		}
		want += x.CPU
	}
	for range 70 { // more than are remembered
		add(background(t, p, s.ID, spin).PID)
	}
	going := background(t, p, s.ID, cove.ExecRequest{Line: "read l; i=0; while [ $i -lt 300 ]; do i=$((i+1)); done", KeepStdin: true})
	used := func() time.Duration {
		got, err := w.store.AddUsage(t.Context(), cove.DefaultTenant, cove.Consumption{})
		if err != nil {
			t.Fatal(err)
		}
		return got.CPU
	}
	for range 2 {
		w.shut(e, w.provider)
		if got := used(); got != want {
			t.Errorf("the tenant has used %s, want %s", got, want)
		}
		e = w.open()
		p = e.As(boss)
	}
	if err := p.Processes(s.ID).Input(t.Context(), going.PID, nil, true); err != nil {
		t.Fatal(err)
	}
	add(going.PID)
	w.shut(e, w.provider)
	e = w.open()
	w.shut(e, w.provider)
	if got := used(); got != want {
		t.Errorf("after all the tenant has used %s, want %s", got, want)
	}
}

// keptIn lists what the provider keeps of a session.
func keptIn(t *testing.T, p cove.Provider, id cove.ID) []string {
	t.Helper()
	box, err := p.Attach(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := cove.As[cove.Resumer](box)
	if !ok {
		t.Fatal("no Resumer")
	}
	var names []string
	for k, err := range r.Kept(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, k.Keep)
	}
	return names
}

func TestWhatLeavesTheTableIsForgotten(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	p := e.As(boss)
	s := mustOpen(t, p, cove.Spec{})
	for range 70 {
		info := background(t, p, s.ID, cove.ExecRequest{Line: "true"})
		if _, err := p.Processes(s.ID).Wait(t.Context(), info.PID); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := len(keptIn(t, w.provider, s.ID)), len(processes(t, p, s.ID)); got != want || got > 65 {
		t.Errorf("the provider keeps %d programs and the table has %d", got, want)
	}
	p = w.restart(e)
	if got := processes(t, p, s.ID); len(got) < 64 || got[len(got)-1].PID != 70 {
		t.Errorf("after a restart the table has %d programs", len(got))
	}
}

// TestStrangersAmongTheKept are forgotten, and said.
func TestStrangersAmongTheKept(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	s := mustOpen(t, e.As(boss), cove.Spec{})
	box, err := w.provider.Attach(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	for keep, note := range map[string]string{
		"p1": "", "p2": "{", "p3": `{"pid":4,"output":"x"}`, "p5": `{"pid":5,"output":"../x"}`, "x": fmt.Sprintf(`{"pid":6,"output":%q}`, cove.NewID()),
	} {
		if _, err := box.Start(t.Context(), cove.Command{Argv: []string{"sleep", "1000"}, Keep: keep, Note: []byte(note)}); err != nil {
			t.Fatal(err)
		}
	}
	p := w.restart(e)
	if got := processes(t, p, s.ID); len(got) != 0 {
		t.Errorf("the table has %+v", got)
	}
	if got := keptIn(t, w.provider, s.ID); len(got) != 0 {
		t.Errorf("the provider still keeps %v", got)
	}
	lost := 0
	for _, err := range w.journal.Events(t.Context(), cove.EventFilter{Kind: "process.lost"}) {
		if err != nil {
			t.Fatal(err)
		}
		lost++
	}
	if lost != 5 {
		t.Errorf("the journal speaks of %d lost programs, want 5", lost)
	}
	if got, err := p.Sessions().Get(t.Context(), s.ID); err != nil || got.Busy {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestPausedSessionsOutliveTheServer: a paused session is paused after each start, also
// after one at which its provider did not answer, and its program goes on.
func TestPausedSessionsOutliveTheServer(t *testing.T) {
	f := &failing{step: "kept", with: cove.Errorf(cove.Unavailable, "it is away")}
	w, id, pid := withProgram(t, f)
	e := w.open()
	if _, err := e.As(boss).Snapshots().Pause(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for _, away := range []bool{false, true, false, false} {
		w.shut(e, w.provider)
		f.on = away
		e = w.open()
		want, cause := cove.Paused, cove.ReasonSessionPaused
		if away {
			want, cause = cove.Failed, cove.ReasonProviderDown
		}
		if got, err := e.As(boss).Sessions().Get(t.Context(), id); err != nil || got.State != want || got.Cause != cause {
			t.Fatalf("%+v, %v; want it %s", got, err, want)
		}
	}
	p := e.As(boss)
	if list := processes(t, p, id); len(list) != 1 || list[0].PID != pid || !list[0].Running {
		t.Errorf("the programs are %+v", list)
	}
	if _, err := p.Snapshots().Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := p.Processes(id).Input(t.Context(), pid, []byte("x\n"), true); err != nil {
		t.Fatal(err)
	}
	if got := follow(t, p, id, pid, 0, ""); got != "ready\nx\n" {
		t.Errorf("the program wrote %q", got)
	}
}

// TestBytesAreCountedAcrossARestart: of much output the provider keeps a part, and what
// a server is told after it took the program up is what was written.
func TestBytesAreCountedAcrossARestart(t *testing.T) {
	w := newWorld(t)
	first := w.open()
	p := first.As(boss)
	s := mustOpen(t, p, cove.Spec{})
	info := background(t, p, s.ID, cove.ExecRequest{Line: "seq 1 3000000; exit 2"})
	before, err := p.Processes(s.ID).Wait(t.Context(), info.PID)
	if err != nil || before.Stdout.Bytes < 20<<20 {
		t.Fatalf("%+v, %v", before, err)
	}
	p = w.restart(first)
	after, err := p.Processes(s.ID).Wait(t.Context(), info.PID)
	if err != nil || after.ExitCode != 2 || after.Stdout.Bytes != before.Stdout.Bytes || !after.Stdout.Truncated {
		t.Errorf("after the restart %d bytes were written, before %d: %v", after.Stdout.Bytes, before.Stdout.Bytes, err)
	}
	page, err := p.Processes(s.ID).Output(t.Context(), info.OutputID, cove.OutputRange{})
	if err != nil || page.Total+page.Dropped != before.Stdout.Bytes {
		t.Errorf("%d bytes are kept and %d dropped: %v", page.Total, page.Dropped, err)
	}
}
