//go:build linux

package guest_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/keeper"
)

// holder is a keeper with one sandbox.
type holder struct{ *keeper.Client }

const box = "box"

func newHolder(t *testing.T) *holder {
	t.Helper()
	c, err := keeper.Launch(t.Context(), t.TempDir(), "/proc/self/exe", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Put(t.Context(), box, keeper.Holding{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Drop(context.Background(), box), c.Close() })
	return &holder{c}
}

func (h *holder) Keep(ctx context.Context, keep string, note []byte, in, out, errs int) error {
	return h.Client.Keep(ctx, box, keep, note, keeper.Streams{In: in, Out: out, Err: errs})
}

func (h *holder) Names(ctx context.Context) ([]string, error) { return h.Programs(ctx, box) }

func (h *holder) Look(ctx context.Context, keep string) ([]byte, int, error) {
	note, in, err := h.Client.Look(ctx, box, keep)
	if errors.Is(err, keeper.ErrUnknown) {
		err = cove.Errorf(cove.NotFound, "unknown")
	}
	return note, in, err
}

func (h *holder) Follow(ctx context.Context, keep string) iter.Seq2[cove.Chunk, error] {
	return h.Client.Follow(ctx, box, keep, 0)
}

func (h *holder) Shut(ctx context.Context, keep string) error { return h.Client.Shut(ctx, box, keep) }

func (h *holder) Finish(ctx context.Context, keep string) error {
	return h.Client.Finish(ctx, box, keep)
}

func (h *holder) Forget(ctx context.Context, keep string) error {
	return h.Client.Forget(ctx, box, keep)
}

// hosts is an agent that several hosts greet, one after the other.
type hosts struct {
	t      *testing.T
	fd     int
	framed bool
	opts   guest.Options
}

func newHosts(t *testing.T, p place) *hosts {
	t.Helper()
	hold := newHolder(t)
	fd, opts, cmd, _ := launch(t, p, func(o *guest.Options) { o.Holder = hold })
	t.Cleanup(func() {
		_ = unix.Shutdown(fd, unix.SHUT_RDWR)
		_ = unix.Close(fd)
		_ = cmd.Wait()
	})
	return &hosts{t, fd, p.framed, opts}
}

// next is another host.
func (h *hosts) next() *guestAt {
	h.t.Helper()
	dup, err := unix.FcntlInt(uintptr(h.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	c, err := guest.Connect(h.t.Context(), transport(h.t, dup, h.framed), h.opts)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := c.Reconcile(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(c.Leave)
	return &guestAt{c, h.opts.Dir, nil}
}

func keptBy(t *testing.T, c *guestAt) (names []string) {
	t.Helper()
	for k, err := range c.Kept(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, k.Keep+":"+string(k.Note))
	}
	return names
}

func TestSecondHost(t *testing.T) {
	for name, p := range map[string]place{"descriptors": {}, "framed": {framed: true}, "namespaces": {namespaces: true}, "no proc": {namespaces: true, noProc: true}} {
		t.Run(name, func(t *testing.T) {
			agent := newHosts(t, p)
			first := agent.next()
			kept := sh("sleep 1000 & sleep 1000")
			kept.Keep, kept.Note = "sleeps", []byte("note")
			if _, err := first.Start(t.Context(), kept); err != nil {
				t.Fatal(err)
			}
			foreground, err := first.Start(t.Context(), sh("trap '' HUP; sleep 2000 & setsid sleep 2000 & wait"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = first.Start(t.Context(), kept)
			wants(t, cove.Conflict, err, "a name that is taken")
			watch, stop := context.WithCancel(t.Context())
			defer stop()
			unwatched := make(chan struct{})
			go func() {
				defer close(unwatched)
				for range first.Files().Watch(watch, ".") {
				}
			}()
			first.Leave()
			<-unwatched
			if r, err := foreground.Wait(t.Context()); err != nil || r.Outcome != cove.Killed {
				t.Errorf("the program in the foreground ended as %+v, %v", r, err)
			}
			if err := foreground.Kill(t.Context()); err != nil {
				t.Errorf("killing it gives %v", err)
			}
			wants(t, cove.Unavailable, first.Ping(t.Context()), "a host that has left")

			second := agent.next()
			if diff := cmp.Diff([]string{"sleeps:note"}, keptBy(t, second)); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if !p.noProc {
				_, out, _ := run(t, second, sh("cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c '^2000$'"))
				if strings.TrimSpace(out) != "0" && p.namespaces {
					t.Errorf("%s programs of the first host are left", out)
				}
			}
			q, err := second.Resume(t.Context(), "sleeps", cove.Command{})
			if err != nil {
				t.Fatal(err)
			}
			if err := second.Forget(t.Context(), "sleeps"); err != nil {
				t.Error(err)
			}
			if r, err := q.Wait(t.Context()); err != nil || r.Signal != "KILL" || r.Wall <= 0 {
				t.Errorf("it ended as %+v, %v", r, err)
			}
			if got := keptBy(t, second); len(got) != 0 {
				t.Errorf("kept are %v", got)
			}
		})
	}
}

// A stream that the agent writes ends when its host leaves, although the agent lives on
// and may keep it open.
func TestStreamsEndWhenTheHostLeaves(t *testing.T) {
	agent := newHosts(t, place{})
	first := agent.next()
	var last error
	watching, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for change, err := range first.Files().Watch(t.Context(), ".") {
			last = err
			if err == nil && change.Kind == cove.Watching {
				close(watching)
			}
		}
	}()
	<-watching
	first.Leave()
	select {
	case <-ended:
		wants(t, cove.Unavailable, last, "a watch of a host that has left")
	case <-time.After(time.Minute):
		t.Fatal("the watch goes on")
	}
}

// TestEndsMeanwhile is about a program that ends while there is no host.
func TestEndsMeanwhile(t *testing.T) {
	agent := newHosts(t, place{})
	first := agent.next()
	mark := filepath.Join(t.TempDir(), "mark")
	cmd := sh("echo before; read x < " + mark + "; echo after; echo wrong >&2; sleep 1000 & exit 7")
	cmd.Keep = "ends"
	if err := unix.Mkfifo(mark, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Start(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	first.Leave()
	if err := os.WriteFile(mark, []byte("go\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := agent.next()
	for range 2 {
		var out, errs strings.Builder
		p, err := second.Resume(t.Context(), "ends", cove.Command{Stdout: &out, Stderr: &errs, Stdin: strings.NewReader("nobody reads this")})
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Wait(t.Context())
		if err != nil || r.ExitCode != 7 || r.Wall <= 0 || out.String() != "before\nafter\n" || errs.String() != "wrong\n" {
			t.Errorf("it ended as %+v, %v, with %q and %q", r, err, out.String(), errs.String())
		}
		wants(t, cove.NotFound, p.Signal(t.Context(), "TERM"), "a signal to it")
	}
	second.Leave()
	third := agent.next()
	var out strings.Builder
	p, err := third.Resume(t.Context(), "ends", cove.Command{Stdout: &out, Stderr: &out, Limits: cove.Limits{Output: 3}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Wait(t.Context()); err != nil || out.Len() != 3 {
		t.Errorf("it ended as %+v, %v, with %q", r, err, out.String())
	}
	_, err = third.Resume(t.Context(), "other", cove.Command{})
	wants(t, cove.NotFound, err, "a program that is not kept")
}

// TestOnlyOneKnows is about programs that were being started or forgotten when
// the host died.
func TestOnlyOneKnows(t *testing.T) {
	agent := newHosts(t, place{})
	first := agent.next()
	for _, name := range []string{"agent-only", "both"} {
		cmd := sh("sleep 1000")
		cmd.Keep = name
		if _, err := first.Start(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
	}
	hold := agent.opts.Holder
	if err := errors.Join(hold.Forget(t.Context(), "agent-only"), hold.Keep(t.Context(), "holder-only", nil, -1, -1, -1)); err != nil {
		t.Fatal(err)
	}
	first.Leave()
	second := agent.next()
	if diff := cmp.Diff([]string{"both:"}, keptBy(t, second)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	names, err := hold.Names(t.Context())
	if diff := cmp.Diff([]string{"both"}, names); diff != "" || err != nil {
		t.Errorf("held: %v (-want +got):\n%s", err, diff)
	}
	p, err := second.Resume(t.Context(), "both", cove.Command{Limits: cove.Limits{Wall: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Wait(t.Context()); err != nil || r.Outcome != cove.TimedOut {
		t.Errorf("it ended as %+v, %v", r, err)
	}
}

func TestKeptRefusals(t *testing.T) {
	agent := newHosts(t, place{})
	c := agent.next()
	for name, change := range map[string]func(*cove.Command){
		"a name with a dot":  func(cmd *cove.Command) { cmd.Keep = "a.b" },
		"a name too long":    func(cmd *cove.Command) { cmd.Keep = strings.Repeat("a", 65) },
		"a note too long":    func(cmd *cove.Command) { cmd.Note = make([]byte, 16<<10+1) },
		"a dir that is none": func(cmd *cove.Command) { cmd.Dir = "/none" },
	} {
		cmd := sh("true")
		cmd.Keep = "name"
		change(&cmd)
		_, err := c.Start(t.Context(), cmd)
		wants(t, cove.Invalid, err, name)
	}
	if got := keptBy(t, c); len(got) != 0 {
		t.Errorf("kept are %v", got)
	}
	for i := range protocol.MaxKept {
		cmd := sh("exit 0")
		cmd.Keep = strings.Repeat("x", 60) + strconv.Itoa(1000+i)
		if _, err := c.Start(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
	}
	cmd := sh("true")
	cmd.Keep = "one-too-many"
	_, err := c.Start(t.Context(), cmd)
	wants(t, cove.Exhausted, err, "one too many")
	c.Leave()
	if got := keptBy(t, agent.next()); len(got) != protocol.MaxKept {
		t.Errorf("the greeting names %d", len(got))
	}
}

// TestStillborn is about what cannot be executed: it is kept as if it had been.
func TestStillborn(t *testing.T) {
	needTerminal(t)
	agent := newHosts(t, place{})
	first := agent.next()
	check := func(p cove.Process, err error, out *strings.Builder, code int, want string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if r, err := p.Wait(t.Context()); err != nil || r.Outcome != cove.Exited || r.ExitCode != code || out.String() != want {
			t.Errorf("it ended as %+v, %v, with %q", r, err, out.String())
		}
	}
	cmds := map[string]cove.Command{
		"missing":  {Argv: []string{"no-such-program"}},
		"terminal": {Argv: []string{"no-such-program"}, TTY: &cove.WindowSize{Cols: 80, Rows: 24}},
		"refused":  {Argv: []string{"/etc/passwd"}},
	}
	said := map[string]string{
		"missing": "cove: no-such-program: not found\n", "terminal": "cove: no-such-program: not found\r\n", "refused": "cove: /etc/passwd: permission denied\n",
	}
	codes := map[string]int{"missing": 127, "terminal": 127, "refused": 126}
	for name, cmd := range cmds {
		var out strings.Builder
		cmd.Keep, cmd.Stdout, cmd.Stderr = name, &out, &out
		p, err := first.Start(t.Context(), cmd)
		check(p, err, &out, codes[name], said[name])
		_, err = first.Start(t.Context(), cmd)
		wants(t, cove.Conflict, err, "the same name")
	}
	first.Leave()
	second := agent.next()
	for name := range cmds {
		var out strings.Builder
		p, err := second.Resume(t.Context(), name, cove.Command{Stdout: &out, Stderr: &out})
		check(p, err, &out, codes[name], said[name])
	}
}

// TestTerminalOfSecondHost is about a terminal and its input.
func TestTerminalOfSecondHost(t *testing.T) {
	needTerminal(t)
	agent := newHosts(t, place{})
	first := agent.next()
	in, typed := io.Pipe()
	cmd := sh("stty -echo; while read x; do echo \"<$x>\"; stty size; done")
	cmd.Keep, cmd.TTY, cmd.Stdin = "tty", &cove.WindowSize{Cols: 80, Rows: 24}, in
	seen := make(chan string, 64)
	cmd.Stdout = lines{seen}
	if _, err := first.Start(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(typed, "one\n")
	for s := ""; !strings.Contains(s, "24 80"); s += <-seen {
	}
	first.Leave()
	second := agent.next()
	in, typed = io.Pipe()
	again := make(chan string, 64)
	p, err := second.Resume(t.Context(), "tty", cove.Command{Stdin: in, Stdout: lines{again}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Resize(t.Context(), cove.WindowSize{Cols: 90, Rows: 20}); err != nil {
		t.Error(err)
	}
	_, _ = io.WriteString(typed, "two\n")
	all := ""
	for ; !strings.Contains(all, "20 90"); all += <-again {
	}
	if !strings.Contains(all, "<one>") || !strings.Contains(all, "<two>") {
		t.Errorf("the terminal shows %q", all)
	}
	_ = typed.Close() // the end of the input is typed, too
	if r, err := p.Wait(t.Context()); err != nil || r.Outcome != cove.Exited {
		t.Errorf("it ended as %+v, %v", r, err)
	}
}

// TestLyingGreetings is about agents that answer nonsense to a second hello.
func TestLyingGreetings(t *testing.T) {
	for name, body := range map[string][]byte{
		"nothing":         {},
		"another version": protocol.Greeting{Version: protocol.Version + 1}.Encode(),
		"a newer form":    append(protocol.Greeting{Version: protocol.Version + 1}.Encode(), "more"...),
		"more than it is": append(protocol.Greeting{Version: protocol.Version}.Encode(), 0),
		"a wrong name":    protocol.Greeting{Version: protocol.Version, Kept: []protocol.Kept{{Keep: "../x"}}}.Encode(),
		"no name":         protocol.Greeting{Version: protocol.Version, Kept: []protocol.Kept{{}}}.Encode(),
		"too many":        protocol.Greeting{Version: protocol.Version, Kept: make([]protocol.Kept, protocol.KeptPage+1)}.Encode(),
		"a name twice":    protocol.Greeting{Version: protocol.Version, Kept: []protocol.Kept{{Keep: "x", Program: 1}, {Keep: "x", Program: 2}}}.Encode(),
		"no order":        protocol.Greeting{Version: protocol.Version, Kept: []protocol.Kept{{Keep: "x", Program: 2}, {Keep: "y", Program: 1}}}.Encode(),
		"no end":          protocol.Greeting{Version: protocol.Version, More: true}.Encode(),
	} {
		t.Run(name, func(t *testing.T) {
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			link, err := protocol.NewAgentDescriptors(fds[1])
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = link.Close() }()
				m, err := link.Receive()
				if err != nil {
					return
				}
				// What was said to an earlier host comes first.
				_ = link.Send(&protocol.Message{Kind: protocol.KindReply, ID: 7, Body: protocol.Reply{}.Encode()})
				_ = link.Send(&protocol.Message{Kind: protocol.KindExited, ID: 8, Body: protocol.Exited{}.Encode()})
				_ = link.Send(&protocol.Message{Kind: protocol.KindReply, ID: m.ID, Body: protocol.Reply{Body: body}.Encode()})
			}()
			_, err = guest.Connect(t.Context(), transport(t, fds[0], false), guest.Options{})
			wants(t, cove.Unavailable, err, "connect")
			<-done
		})
	}
}
