package fake_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
)

func TestNoRoomForAnotherProcess(t *testing.T) {
	s := sandbox(t, cove.Spec{Resources: cove.Resources{PIDs: 2}})
	for range 2 {
		if _, err := s.Start(t.Context(), cove.Command{Argv: []string{"sleep", "1000"}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, argv := range [][]string{{"true"}, {"echo"}} {
		_, err := s.Start(t.Context(), cove.Command{Argv: argv})
		wants(t, cove.Exhausted, err)
	}
	full := sandbox(t, cove.Spec{Resources: cove.Resources{Memory: 4 * cove.MiB}})
	if _, err := full.Start(t.Context(), cove.Command{Argv: []string{"hog", "4170000", "1000"}}); err != nil {
		t.Fatal(err)
	}
	for usage(t, full).Memory < 4170000 {
		runtime.Gosched() // the hog takes its memory a moment later
	}
	_, err := full.Start(t.Context(), cove.Command{Argv: []string{"echo"}})
	wants(t, cove.Exhausted, err)
}

func TestInstantPrograms(t *testing.T) {
	s := sandbox(t, cove.Spec{})
	for _, cmd := range []cove.Command{
		{Argv: []string{"false"}},
		{Argv: []string{"false"}, Dir: "/tmp"},
		{Argv: []string{"false"}, Env: map[string]string{"PATH": "/bin"}},
		{Argv: []string{"false"}, TTY: &cove.WindowSize{Cols: 1, Rows: 1}},
	} {
		p, err := s.Start(t.Context(), cmd)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := p.Wait(t.Context()); err != nil || r.ExitCode != 1 || r.Outcome != cove.Exited {
			t.Errorf("false gives %+v, %v", r, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Signal(ctx, "TERM"); cove.CodeOf(err) != cove.Canceled {
			t.Errorf("a signal with a context that has ended gives %v", err)
		}
		if err := p.Resize(ctx, cove.WindowSize{Cols: 1, Rows: 1}); cove.CodeOf(err) != cove.Canceled {
			t.Errorf("a resize with a context that has ended gives %v", err)
		}
	}
	u, err := s.Usage(t.Context())
	if err != nil || u.CPU == 0 {
		t.Errorf("usage is %+v, %v", u, err)
	}
	// A program of that name that comes first in PATH is another one.
	if err := s.Files().Write(t.Context(), "bin/true", strings.NewReader("#!/bin/sh\nexit 9\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if r := run(t, s, cove.Command{Argv: []string{"true"}, Env: map[string]string{"PATH": "/workspace/bin"}}); r.ExitCode != 9 {
		t.Errorf("the other true gives %d", r.ExitCode)
	}
}

// typed runs a program on a terminal with some input.
func typed(t *testing.T, s cove.Sandbox, input string, argv ...string) (string, cove.Result) {
	t.Helper()
	var out bytes.Buffer
	p, err := s.Start(t.Context(), cove.Command{Argv: argv, Stdin: strings.NewReader(input), Stdout: &out, TTY: &cove.WindowSize{Cols: 80, Rows: 24}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), r
}

func TestTerminalKeys(t *testing.T) {
	s := sandbox(t, cove.Spec{})
	for _, tc := range []struct {
		in, out string
		argv    []string
		code    int
	}{
		{"ab\x15c\n\x04", "c\n", []string{"sh", "-c", "cat > f; cat f > /tmp/f"}, 0},
		{"\x1c", "", []string{"sleep", "1000"}, 131},
		{"x\x03", "", []string{"sh", "-c", "setsid sleep 0.05; sleep 1000"}, 130},
		{"\x7f\x08a\n", "a\n", []string{"sh", "-c", "cat > /tmp/f"}, 0},
	} {
		if r := sh(t, s, "rm -f /tmp/f"); r.ExitCode != 0 {
			t.Fatal(r.stderr)
		}
		_, r := typed(t, s, tc.in, tc.argv...)
		got, _ := read(t.Context(), s, "/tmp/f")
		if got != tc.out || r.ExitCode != tc.code {
			t.Errorf("%q gives %q and %d; want %q and %d", tc.in, got, r.ExitCode, tc.out, tc.code)
		}
	}
	out, r := typed(t, s, "echo hi; tty\nif true\nthen cat /dev/tty\nfi\nline\n\x04exit 3\n", "sh")
	// What is typed ahead is shown among what the shell writes.
	if r.ExitCode != 3 || !strings.Contains(out, "$ ") || !strings.Contains(out, "hi\r\n") || !strings.Contains(out, "/dev/pts/0\r\n") {
		t.Errorf("an interactive shell gives %d and %q", r.ExitCode, out)
	}
	out, _ = typed(t, s, "", "sh", "-c", "stty echo raw sane -raw; stty nonsense; echo $?; echo x > /dev/tty")
	if !strings.Contains(out, "1\r\nx\r\n") {
		t.Errorf("stty gives %q", out)
	}
	poor := open(t, fake.Config{Powers: []cove.Power{cove.PowerAttach}})
	p, err := poor.Create(t.Context(), cove.NewID(), cove.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Start(t.Context(), cove.Command{Argv: []string{"true"}, TTY: &cove.WindowSize{Cols: 1, Rows: 1}})
	wants(t, cove.Unsupported, err)
}

func TestSignalsWithoutDefault(t *testing.T) {
	s := sandbox(t, cove.Spec{})
	var out bytes.Buffer
	in, w := io.Pipe()
	p, err := s.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", "trap '' HUP; echo up; cat; echo end"}, Stdin: in, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	for _, sig := range []cove.Signal{"WINCH", "CONT", "STOP", "STOP", "CONT", "TSTP", "TSTP", "CONT"} {
		if err := p.Signal(t.Context(), sig); err != nil {
			t.Errorf("%s: %v", sig, err)
		}
	}
	if _, err := io.WriteString(w, "line\n"); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if r, err := p.Wait(t.Context()); err != nil || r.ExitCode != 0 || out.String() != "up\nline\nend\n" {
		t.Errorf("it gave %+v, %v and %q", r, err, out.String())
	}
}

// dial connects to a port as soon as somebody listens on it.
func dial(t *testing.T, s cove.Sandbox, port int) net.Conn {
	t.Helper()
	d, ok := cove.As[cove.Dialer](s)
	if !ok {
		t.Fatal("no dialer")
	}
	for {
		conn, err := d.Dial(t.Context(), port)
		switch {
		case err == nil:
			return conn
		case cove.CodeOf(err) != cove.Unavailable:
			t.Fatal(err)
		}
		sh(t, s, "sleep 0.001")
	}
}

func TestDialing(t *testing.T) {
	s := sandbox(t, cove.Spec{})
	var out bytes.Buffer
	nc, err := s.Start(t.Context(), cove.Command{Argv: []string{"nc", "-l", "-p", "7000"}, Stdin: strings.NewReader("from inside"), Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	conn := dial(t, s, 7000)
	got := make([]byte, 11)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "from inside" {
		t.Errorf("nc sent %q, %v", got, err)
	}
	if _, err := fmt.Fprint(conn, "from outside"); err != nil {
		t.Error(err)
	}
	_ = conn.Close()
	if r, err := nc.Wait(t.Context()); err != nil || r.ExitCode != 0 || out.String() != "from outside" {
		t.Errorf("nc gave %+v, %v and %q", r, err, out.String())
	}
	if _, err := s.Start(t.Context(), cove.Command{Argv: []string{"serve", "80"}}); err != nil {
		t.Fatal(err)
	}
	_ = dial(t, s, 80).Close()
	if r := sh(t, s, "serve 80; echo $?; nc -l 80"); !strings.Contains(r.stderr, "Address already in use") || r.stdout != "1\n" {
		t.Errorf("a port taken twice gives %q %q", r.stdout, r.stderr)
	}
}

func TestListenerThatNeverAccepts(t *testing.T) {
	s := sandbox(t, cove.Spec{})
	d, _ := cove.As[cove.Dialer](s)
	p, _ := cove.As[cove.Pauser](s)
	srv, err := s.Start(t.Context(), cove.Command{Argv: []string{"serve", "80", "x"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = dial(t, s, 80).Close()
	if err := p.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var waiting []io.Closer
	for range 20 {
		c, err := d.Dial(ctx, 80)
		if err != nil {
			wants(t, cove.Canceled, err)
			break
		}
		if waiting = append(waiting, c); len(waiting) == 16 {
			cancel()
		}
	}
	cancel()
	if len(waiting) < 16 {
		t.Errorf("%d connections were taken", len(waiting))
	}
	if err := srv.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range waiting {
		_ = c.Close()
	}
}
