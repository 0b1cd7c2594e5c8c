package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/cli"
)

// terminals makes a terminal: what is written to keys is typed at it.
func terminals(t *testing.T) (keys, screen *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = keys.Close() })
	fd := int(keys.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: 100, Row: 30}); err != nil {
		t.Fatal(err)
	}
	return keys, screen
}

// display collects what a terminal shows and waits for words in it.
type display struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newDisplay(r io.Reader) *display {
	d := &display{more: make(chan struct{}, 1)}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			d.mu.Lock()
			d.text.Write(buf[:n])
			d.mu.Unlock()
			select {
			case d.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return d
}

func (d *display) await(t *testing.T, words string) {
	t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	for {
		d.mu.Lock()
		got := d.text.String()
		d.mu.Unlock()
		if strings.Contains(got, words) {
			return
		}
		select {
		case <-d.more:
		case <-late.C:
			t.Fatalf("the terminal shows %q, not %q", got, words)
		}
	}
}

// atTerminal runs a command at a terminal.
func (b *box) atTerminal(args ...string) (keys io.Writer, d *display, code <-chan int) {
	b.t.Helper()
	k, screen := terminals(b.t)
	d = newDisplay(k)
	ended := make(chan int, 1)
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	b.t.Cleanup(cancel)
	go func() {
		ended <- cli.Run(ctx, cli.System{Args: args, Stdin: screen, Stdout: screen, Stderr: screen, Env: b.lookup})
	}()
	return k, d, ended
}

func typed(t *testing.T, keys io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(keys, text); err != nil {
		t.Fatal(err)
	}
}

func TestAttachStartsAShellAtATerminal(t *testing.T) {
	b := served(t).with("TERM", "vt100")
	id := b.id("sandbox", "create")
	keys, d, code := b.atTerminal("sandbox", "attach", id)
	typed(t, keys, "echo size $(stty size) term $TERM\r")
	d.await(t, "size 30 100 term vt100")
	typed(t, keys, "exit 7\r")
	if got := <-code; got != 7 {
		t.Errorf("exit code %d", got)
	}
	typed(t, keys, "\n") // ends the read that is still under way
}

func TestAttachCanBeLeft(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create")
	keys, d, code := b.atTerminal("sandbox", "attach", id, "--", "bash", "-c", "echo begun; cat")
	d.await(t, "begun")
	typed(t, keys, "\x10\x11")
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
	if got := b.ok("sandbox", "ps", id); !strings.Contains(got, "running") {
		t.Errorf("the program ended: %s", got)
	}
	keys, d, code = b.atTerminal("sandbox", "attach", "--pid", "1", id)
	d.await(t, "begun")
	typed(t, keys, "word\r")
	d.await(t, strings.Repeat("word\r\n", 2))
	typed(t, keys, "\x04")
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
	typed(t, keys, "\n")
}

func TestAttachWithoutATerminal(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create")
	s := b.input("echo from a pipe\nexit 5\n").run("sandbox", "attach", id)
	if s.code != 5 || s.out != "from a pipe\n" {
		t.Errorf("%+v", s)
	}
	b.fails(125, "has no background program 9", "sandbox", "attach", "--pid", "9", id)
}

func TestProgramsThatDoNotReadEndAtATerminal(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create")
	for _, args := range [][]string{
		{"run", "--", "echo", "hi"},
		{"sandbox", "exec", id, "--", "echo", "hi"},
		{"run", "--url", b.ready.URL, "--", "echo", "hi"},
	} {
		b := b.with("COVE_API_KEY", strings.TrimSpace(read(t, b.ready.KeyFile)))
		keys, d, code := b.atTerminal(args...)
		d.await(t, "hi\r\n")
		select {
		case got := <-code:
			if got != 0 {
				t.Errorf("%v: exit code %d", args, got)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%v does not end", args)
		}
		typed(t, keys, "\n") // ends the read that is still under way
	}
}

func TestQueueIsShownAtATerminal(t *testing.T) {
	b := newBox(t).with("MSB_MAX_SESSIONS", "1", "MSB_ENABLE_LRU_EVICTION", "false")
	b.serve(serverOptions())
	id := b.id("sandbox", "create")
	_, d, code := b.atTerminal("sandbox", "create", "--wait")
	d.await(t, "waiting for room: place 1 in the queue")
	b.ok("sandbox", "rm", id)
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
}
