//go:build linux

package guest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
)

// everywhere runs a test with both transports, with and without namespaces.
func everywhere(t *testing.T, test func(t *testing.T, c *guestAt)) {
	for name, p := range places() {
		t.Run(name, func(t *testing.T) { test(t, connect(t, p)) })
	}
}

// run runs a program to its end.
func run(t testing.TB, c *guestAt, cmd cove.Command) (cove.Result, string, string) {
	t.Helper()
	var out, errs bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &errs
	}
	p, err := c.Start(t.Context(), cmd)
	if err != nil {
		t.Fatalf("start %q: %v", cmd.Argv, err)
	}
	r, err := p.Wait(t.Context())
	if err != nil {
		t.Fatalf("wait: %v", err)
	}
	return r, out.String(), errs.String()
}

func sh(script string) cove.Command { return cove.Command{Argv: []string{"sh", "-c", script}} }

func wants(t testing.TB, code cove.Code, err error, what string) {
	t.Helper()
	if cove.CodeOf(err) != code {
		t.Errorf("%s gives %v; want code %q", what, err, code)
	}
}

func TestPrograms(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		if err := c.Files().Write(t.Context(), "plain", strings.NewReader("no program"), 0o644); err != nil {
			t.Fatal(err)
		}
		for name, tc := range map[string]struct {
			cmd       cove.Command
			code      int
			out, errs string
			outcome   cove.Outcome
			errsHolds bool
		}{
			"streams":      {cmd: sh("echo out; echo err >&2; exit 3"), code: 3, out: "out\n", errs: "err\n"},
			"directory":    {cmd: cove.Command{Argv: []string{"pwd"}}, out: c.dir + "\n"},
			"stdin":        {cmd: cove.Command{Argv: []string{"cat"}, Stdin: strings.NewReader("in")}, out: "in"},
			"no stdin":     {cmd: cove.Command{Argv: []string{"cat"}}},
			"environment":  {cmd: cove.Command{Argv: []string{"sh", "-c", "echo $A $HOME"}, Env: map[string]string{"A": "b c", "HOME": "/x"}}, out: "b c /x\n"},
			"signal":       {cmd: sh("kill -BUS $$"), code: 128 + 7, outcome: cove.Signaled},
			"odd signal":   {cmd: sh("kill -40 $$"), code: 128 + 40, outcome: cove.Signaled},
			"not found":    {cmd: cove.Command{Argv: []string{"no-such"}}, code: 127, errs: "no-such", errsHolds: true},
			"no path":      {cmd: cove.Command{Argv: []string{"true"}, Env: map[string]string{"PATH": "relative:"}}, code: 127, errs: "true", errsHolds: true},
			"plain file":   {cmd: cove.Command{Argv: []string{"./plain"}}, code: 126, errs: "./plain", errsHolds: true},
			"by path":      {cmd: cove.Command{Argv: []string{"plain"}, Env: map[string]string{"PATH": c.dir}}, code: 126, errs: "plain", errsHolds: true},
			"2 MB":         {cmd: cove.Command{Argv: []string{"echo", strings.Repeat("x", 2<<20)}}, code: 126, errs: "too long", errsHolds: true},
			"5 MB":         {cmd: cove.Command{Argv: []string{"echo", strings.Repeat("x", 5<<20)}}, code: 126, errs: "too long", errsHolds: true},
			"100 KB":       {cmd: cove.Command{Argv: []string{"printf", "%s", strings.Repeat("x", 100<<10)}}, out: strings.Repeat("x", 100<<10)},
			"time limit":   {cmd: cove.Command{Argv: []string{"sleep", "1000"}, Limits: cove.Limits{Wall: 50 * time.Millisecond}}, code: -1, outcome: cove.TimedOut},
			"output limit": {cmd: cove.Command{Argv: []string{"yes"}, Limits: cove.Limits{Output: 5}}, code: 137, out: "y\ny\ny", outcome: cove.OutputLimit},
		} {
			r, out, errs := run(t, c, tc.cmd)
			if tc.outcome == "" {
				tc.outcome = cove.Exited
			}
			if r.Outcome != tc.outcome || r.ExitCode != tc.code || out != tc.out || tc.errsHolds != (errs != tc.errs) || !strings.Contains(errs, tc.errs) {
				t.Errorf("%s: %+v, stdout %.100q, stderr %.100q", name, r, out, errs)
			}
		}
	})
}

func TestWritersThatAreOne(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		var both bytes.Buffer
		cmd := sh("for i in 1 2 3; do echo out $i; echo err $i >&2; done")
		cmd.Stdout, cmd.Stderr = &both, &both
		run(t, c, cmd)
		if want := "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"; both.String() != want {
			t.Errorf("got %q", both.String())
		}
		cmd = sh("yes")
		cmd.Limits.Output = 1 << 20 // counted though nobody wants it
		p, err := c.Start(t.Context(), cmd)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := p.Wait(t.Context()); err != nil || r.Outcome != cove.OutputLimit {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestRefusals(t *testing.T) {
	c := connect(t, place{})
	for name, cmd := range map[string]cove.Command{
		"nothing":       {},
		"no name":       {Argv: []string{""}},
		"NUL":           {Argv: []string{"a", "b\x00"}},
		"bad variable":  {Argv: []string{"true"}, Env: map[string]string{"a=b": ""}},
		"NUL variable":  {Argv: []string{"true"}, Env: map[string]string{"a": "\x00"}},
		"tiny terminal": {Argv: []string{"true"}, TTY: &cove.WindowSize{Cols: 1}},
		"directory":     {Argv: []string{"true"}, Dir: "missing"},
		"NUL directory": {Argv: []string{"true"}, Dir: "\x00"},
		"too many":      {Argv: make([]string, 200_000)},
	} {
		if name == "too many" {
			cmd.Argv[0] = "true"
		}
		_, err := c.Start(t.Context(), cmd)
		wants(t, cove.Invalid, err, name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Start(ctx, cove.Command{Argv: []string{"true"}, Stdin: strings.NewReader("x")})
	wants(t, cove.Canceled, err, "a context that has ended")
	for _, port := range []int{0, 65536} {
		_, err := c.Dial(t.Context(), port)
		wants(t, cove.Invalid, err, "dial")
	}
	_, err = c.Dial(t.Context(), 1)
	wants(t, cove.Unavailable, err, "dialing nobody")
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if c.PID() < 1 {
		t.Errorf("pid %d", c.PID())
	}
}

// sums is a reader of random bytes and a writer that forgets them; both know
// the sum of what they saw.
func random(size int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{1}), size)
}

func TestManyBytesInAndOut(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		size := int64(64 << 20)
		if testing.Short() {
			size = 8 << 20
		}
		in, out := sha256.New(), sha256.New()
		r, _, errs := run(t, c, cove.Command{Argv: []string{"cat"}, Stdin: io.TeeReader(random(size), in), Stdout: out})
		if r.ExitCode != 0 || errs != "" || !bytes.Equal(in.Sum(nil), out.Sum(nil)) {
			t.Errorf("%+v %s: the bytes changed", r, errs)
		}
		in.Reset()
		out.Reset()
		if err := c.Files().Write(t.Context(), "big", io.TeeReader(random(size), in), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := c.Files().Read(t.Context(), "big", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if n, err := io.Copy(out, f); err != nil || n != size || !bytes.Equal(in.Sum(nil), out.Sum(nil)) {
			t.Errorf("%d bytes, %v: the file changed", n, err)
		}
	})
}

// stuck is a writer that takes nothing until it is let go.
type stuck struct {
	first, gate chan struct{}
	once        sync.Once
	n           int
}

func newStuck() *stuck { return &stuck{first: make(chan struct{}), gate: make(chan struct{})} }

func (s *stuck) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.first) })
	<-s.gate
	s.n += len(b)
	return len(b), nil
}

func TestSlowReaderHoldsUpNobody(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		const size = 256 << 20
		slow := newStuck()
		p, err := c.Start(t.Context(), cove.Command{Argv: []string{"head", "-c", fmt.Sprint(size), "/dev/zero"}, Stdout: slow})
		if err != nil {
			t.Fatal(err)
		}
		<-slow.first
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 5 {
			if _, out, _ := run(t, c, cove.Command{Argv: []string{"head", "-c", "1000000", "/dev/zero"}}); len(out) != 1000000 {
				t.Errorf("another program wrote %d bytes", len(out))
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
			t.Errorf("the heap grew by %d bytes while nobody read", grown)
		}
		if rss := resident(t, c.cmd.Process.Pid); rss > 128<<20 {
			t.Errorf("the agent holds %d bytes", rss)
		}
		close(slow.gate)
		if r, err := p.Wait(t.Context()); err != nil || r.ExitCode != 0 || slow.n != size {
			t.Errorf("%+v, %v, %d bytes", r, err, slow.n)
		}
	})
}

func resident(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var size, rss int64
	if _, err := fmt.Sscan(string(text), &size, &rss); err != nil {
		t.Fatal(err)
	}
	return rss * int64(os.Getpagesize())
}

// tree leaves children of every kind, prints their numbers, and stays.
const tree = `sleep 1000 & echo $!
setsid sh -c 'echo $$; exec sleep 1000' &
(setsid sh -c '(sh -c "echo \$\$; exec sleep 1000" &) ; exit' &)
`

// lines is a writer that hands out lines.
type lines struct{ ch chan string }

func (l lines) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		l.ch <- strings.TrimSpace(line)
	}
	return len(b), nil
}

func TestKillReachesAll(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		for name, script := range map[string]string{"while it runs": tree + "sleep 1000", "what it left": tree + "sleep 0.2"} {
			l := lines{make(chan string, 16)}
			cmd := sh(script)
			cmd.Stdout = l
			p, err := c.Start(t.Context(), cmd)
			if err != nil {
				t.Fatal(err)
			}
			pids := []string{<-l.ch, <-l.ch, <-l.ch}
			if name == "what it left" {
				if r, err := p.Wait(t.Context()); err != nil || r.Outcome != cove.Exited {
					t.Errorf("%+v, %v", r, err)
				}
			}
			_, bystander, _ := run(t, c, sh("setsid sleep 1000 >/dev/null 2>&1 & echo $!"))
			for range 2 {
				if err := p.Kill(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, pid := range pids {
				if r, _, _ := run(t, c, sh("kill -0 "+pid)); r.ExitCode == 0 {
					t.Errorf("%s: process %s lives", name, pid)
				}
			}
			if r, _, errs := run(t, c, sh("kill "+bystander)); r.ExitCode != 0 {
				t.Errorf("%s: a child of another program is gone: %s", name, errs)
			}
		}
	})
}

// TestManyOrphans leaves more processes behind than an agent looks after one by
// one.
func TestManyOrphans(t *testing.T) {
	for name, p := range map[string]place{"descriptors": {namespaces: true}, "framed": {namespaces: true, framed: true}} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, p)
			left := func() int {
				t.Helper()
				u, err := c.Usage(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return u.PIDs
			}
			const many = "i=0; while [ $i -lt 300 ]; do %s >/dev/null 2>&1 & i=$((i+1)); done"
			p, err := c.Start(t.Context(), sh(fmt.Sprintf(many, "sleep 1000")))
			if err != nil {
				t.Fatal(err)
			}
			if r, err := p.Wait(t.Context()); err != nil || r.ExitCode != 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			if n := left(); n < 300 {
				t.Errorf("%d processes are left", n)
			}
			if err := p.Kill(t.Context()); err != nil {
				t.Error(err)
			}
			if n := left(); n != 0 {
				t.Errorf("after the kill %d processes are left", n)
			}
			run(t, c, sh(fmt.Sprintf(many, "sleep 0.2")))
			const rounds = 1000
			for range rounds {
				run(t, c, sh("exec true")) // who ends unseen is found with the next
				if left() == 0 {
					return
				}
			}
			t.Errorf("%d processes are left that nobody killed", left())
		})
	}
}

// TestWithoutProc runs programs where the process table is not to be seen, as
// in some containers. What they leave behind is reaped late, and killed as far
// as a group goes.
func TestWithoutProc(t *testing.T) {
	c := connect(t, place{namespaces: true, noProc: true})
	for range 3 {
		if r, out, errs := run(t, c, sh("sleep 0.01 & echo fine")); r.ExitCode != 0 || out != "fine\n" {
			t.Errorf("%+v, %q, %q", r, out, errs)
		}
	}
	p, err := c.Start(t.Context(), sh("sleep 1000 & sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(t.Context()); err != nil {
		t.Error(err)
	}
	if r, err := p.Wait(t.Context()); err != nil || r.Outcome != cove.Killed {
		t.Errorf("%+v, %v", r, err)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTerminal(t *testing.T) {
	needTerminal(t)
	everywhere(t, func(t *testing.T, c *guestAt) {
		var out bytes.Buffer
		p, err := c.Start(t.Context(), cove.Command{
			Argv: []string{"sh", "-c", "stty size; read x; stty size; echo got $x; seq 1 3000"}, Stdout: &out, Stdin: strings.NewReader("typed\n"),
			TTY: &cove.WindowSize{Cols: 80, Rows: 24},
		})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := p.Wait(t.Context()); err != nil || r.ExitCode != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		text := strings.ReplaceAll(out.String(), "\r\n", "\n")
		if !strings.Contains(text, "24 80\n") || !strings.Contains(text, "got typed\n1\n2\n") || !strings.HasSuffix(text, "\n2999\n3000\n") {
			t.Errorf("the terminal showed %d bytes: %.200q … %q", len(text), text, text[max(0, len(text)-40):])
		}
		wants(t, cove.NotFound, p.Resize(t.Context(), cove.WindowSize{Cols: 1, Rows: 1}), "resizing after the end")
		p, err = c.Start(t.Context(), cove.Command{Argv: []string{"no-such"}, Stdout: &out, TTY: &cove.WindowSize{Cols: 80, Rows: 24}})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := p.Wait(t.Context()); err != nil || r.ExitCode != 127 || !strings.Contains(out.String(), "cove: no-such: not found") {
			t.Errorf("%+v, %v, %q", r, err, out.String())
		}
		if err := p.Kill(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestOutOfMemory(t *testing.T) {
	oom := false
	c := connect(t, place{}, func(o *guest.Options) { o.OutOfMemory = func() bool { return oom } })
	if r, _, _ := run(t, c, sh("kill -KILL $$")); r.Outcome != cove.Signaled || r.Signal != "KILL" {
		t.Errorf("%+v", r)
	}
	oom = true
	if r, _, _ := run(t, c, sh("kill -KILL $$")); r.Outcome != cove.OutOfMemory || r.ExitCode != 137 {
		t.Errorf("%+v", r)
	}
}

// TestKillBesideFiles keeps the agent busy with as many file calls as it takes
// at once: programs must end in time all the same.
func TestKillBesideFiles(t *testing.T) {
	c := connect(t, place{})
	ctx, cancel := context.WithCancel(t.Context())
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer cancel()
	refused := make(chan error, 1)
	for range 200 {
		watchers.Go(func() {
			for _, err := range c.Files().Watch(ctx, ".") {
				if err == nil {
					continue
				}
				select {
				case refused <- err:
				default:
				}
			}
		})
	}
	if err := <-refused; cove.CodeOf(err) != cove.Exhausted {
		t.Fatalf("one watch too many gives %v", err)
	}
	r, _, _ := run(t, c, cove.Command{Argv: []string{"sleep", "1000"}, Limits: cove.Limits{Wall: 50 * time.Millisecond}})
	if r.Outcome != cove.TimedOut {
		t.Errorf("the program ended as %s", r.Outcome)
	}
}

// TestAdoptWhileSomethingRuns is about a program that was there before its sandbox
// was anybody's.
func TestAdoptWhileSomethingRuns(t *testing.T) {
	c := connect(t, place{})
	r, w := io.Pipe()
	p, err := c.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", "read x; kill -KILL $$"}, Stdin: r})
	if err != nil {
		t.Fatal(err)
	}
	c.Adopt(guest.Options{Dir: c.dir, OutOfMemory: func() bool { return true }, Env: map[string]string{"WHO": "adopted"}})
	if _, out, _ := run(t, c, sh("echo $WHO")); out != "adopted\n" {
		t.Errorf("a program after Adopt prints %q", out)
	}
	if _, err := io.WriteString(w, "go\n"); err != nil {
		t.Fatal(err)
	}
	got, err := p.Wait(t.Context())
	if err != nil || got.Outcome != cove.OutOfMemory {
		t.Errorf("the program ended as %+v, %v; the new options say that it had no memory", got, err)
	}
	_ = w.Close()
}
