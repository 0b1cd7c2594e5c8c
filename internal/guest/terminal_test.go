//go:build linux

package guest_test

import (
	"io"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

// screen is a writer that a test can wait on.
type screen struct {
	ch   chan string
	seen string
}

func (s *screen) Write(b []byte) (int, error) {
	s.ch <- string(b)
	return len(b), nil
}

// until waits for a text to appear.
func (s *screen) until(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(s.seen, text) {
		select {
		case more := <-s.ch:
			s.seen += more
		case <-t.Context().Done():
			t.Fatalf("%q never appeared in %q", text, s.seen)
		}
	}
}

func TestTypingAndResizing(t *testing.T) {
	needTerminal(t)
	everywhere(t, func(t *testing.T, c *guestAt) {
		in, keys := io.Pipe()
		out := &screen{ch: make(chan string, 64)}
		p, err := c.Start(t.Context(), cove.Command{
			Argv:  []string{"sh", "-c", "echo ready; read line; echo \"got $line\"; read line; stty size; exec cat"},
			Stdin: in, Stdout: out, TTY: &cove.WindowSize{Cols: 80, Rows: 24},
		})
		if err != nil {
			t.Fatal(err)
		}
		press := func(text string) {
			t.Helper()
			if _, err := io.WriteString(keys, text); err != nil {
				t.Fatal(err)
			}
		}
		out.until(t, "ready\r\n")
		press("hello\n")
		out.until(t, "hello\r\ngot hello\r\n")
		if err := p.Resize(t.Context(), cove.WindowSize{Cols: 132, Rows: 50}); err != nil {
			t.Fatal(err)
		}
		press("more\n")
		out.until(t, "50 132\r\n")
		wants(t, cove.Invalid, p.Resize(t.Context(), cove.WindowSize{}), "a size of nothing")
		press("to cat\n")
		out.until(t, "to cat\r\nto cat\r\n")
		press("\x03")
		r, err := p.Wait(t.Context())
		if err != nil || r.Outcome != cove.Signaled || r.Signal != "INT" || r.ExitCode != 130 {
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := keys.Write([]byte("x")); err == nil {
			t.Error("somebody reads what is typed after the end")
		}
		plain, err := c.Start(t.Context(), cove.Command{Argv: []string{"sleep", "1000"}})
		if err != nil {
			t.Fatal(err)
		}
		wants(t, cove.Unsupported, plain.Resize(t.Context(), cove.WindowSize{Cols: 1, Rows: 1}), "resizing without a terminal")
		wants(t, cove.Invalid, plain.Signal(t.Context(), "NONE"), "an unknown signal")
		if err := plain.Signal(t.Context(), "TERM"); err != nil {
			t.Error(err)
		}
		if r, err := plain.Wait(t.Context()); err != nil || r.Signal != "TERM" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// What a program leaves behind may hold its terminal, and holds up nobody.
func TestATerminalThatChildrenHold(t *testing.T) {
	needTerminal(t)
	everywhere(t, func(t *testing.T, c *guestAt) {
		out := &screen{ch: make(chan string, 64)}
		p, err := c.Start(t.Context(), cove.Command{
			Argv: []string{"sh", "-c", "setsid sleep 1000 & echo up"}, Stdout: out, TTY: &cove.WindowSize{Cols: 80, Rows: 24},
		})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := p.Wait(t.Context()); err != nil || r.Outcome != cove.Exited {
			t.Errorf("%+v, %v", r, err)
		}
		out.until(t, "up\r\n")
		if err := p.Kill(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
