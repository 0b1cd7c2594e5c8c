//go:build linux

package guest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

// replace is a program that makes a file as soon as it has read all its input. It says when
// it reads, after the first line.
const replace = `read -r l; echo "$l" >f.new; echo reading; while read -r l; do :; done; : >f`

// hosting is what a host is told that is killed.
type hosting struct {
	Framed bool
	Dir    string
	Env    map[string]string
}

// playHost is a host that gives a program some input and is killed before the end of it.
func playHost(args []string) error {
	var h hosting
	if err := json.Unmarshal([]byte(args[0]), &h); err != nil {
		return err
	}
	var tr guest.Transport
	if h.Framed {
		_ = unix.SetNonblock(linuxtest.FirstFile, true)
		tr = guest.Framed(os.NewFile(linuxtest.FirstFile, "host"))
	} else {
		var err error
		if tr, err = guest.Descriptors(linuxtest.FirstFile); err != nil {
			return err
		}
	}
	c, err := guest.Connect(context.Background(), tr, guest.Options{Dir: h.Dir, Env: h.Env})
	if err != nil {
		return err
	}
	p, err := c.Start(context.Background(), replacing(io.MultiReader(strings.NewReader("first\n"), neverReader{nil}), os.Stdout))
	if err != nil {
		return err
	}
	r, err := p.Wait(context.Background())
	return fmt.Errorf("the program ended as %+v: %w", r, err)
}

func replacing(in io.Reader, out io.Writer) cove.Command {
	c := sh(replace)
	c.Stdin, c.Stdout = in, out
	return c
}

// readingHost starts such a host, and returns when its program reads what it is not given.
func readingHost(t *testing.T, fd int, h hosting) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	link := os.NewFile(uintptr(dup), "link")
	said, say, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd := linuxtest.Start(t, linuxtest.Child{Name: "host", Args: []string{string(text)}, Files: []*os.File{link}}, say, &errs)
	_, _ = link.Close(), say.Close()
	line, err := io.ReadAll(io.LimitReader(said, int64(len("reading\n"))))
	_ = said.Close()
	if string(line) != "reading\n" {
		t.Fatalf("the host said %q, %v: %s", line, err, errs.String())
	}
	return cmd
}

// unreplaced looks at a workspace whose programs were ended.
func unreplaced(t *testing.T, dir *os.Root) {
	t.Helper()
	if text, err := dir.ReadFile("f"); err == nil {
		t.Fatalf("the program took the end of its host for the end of its input, and made %q the file", text)
	}
	if text, err := dir.ReadFile("f.new"); err != nil || string(text) != "first\n" {
		t.Fatalf("it has read %q, %v", text, err)
	}
}

// linger gives a program that took the end of its host for the end of its input the time to
// go on.
func linger(t *testing.T) {
	t.Helper()
	lull, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	<-lull.Done()
}

// TestInputOfAKilledHost: a host is killed while a program reads its input. The agent ends
// the program before it can take that for the end of the input, whether its link goes on
// with the next host or ends.
func TestInputOfAKilledHost(t *testing.T) {
	for name, p := range map[string]struct {
		place

		next bool // the link is held, for the next host
	}{
		"descriptors":             {place{}, false},
		"framed":                  {place{framed: true}, false},
		"descriptors, namespaces": {place{namespaces: true}, false},
		"framed, namespaces":      {place{framed: true, namespaces: true}, false},
		"next host":               {place{namespaces: true}, true},
		"next host, framed":       {place{framed: true, namespaces: true}, true},
		"next host, no /proc":     {place{namespaces: true, noProc: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 {
				killHost(t, p.place, p.next)
			}
		})
	}
}

func killHost(t *testing.T, p place, next bool) {
	t.Helper()
	fd, opts, agent, _ := launch(t, p)
	host := readingHost(t, fd, hosting{p.framed, opts.Dir, opts.Env})
	at := opts.Dir
	if p.namespaces {
		at = fmt.Sprintf("/proc/%d/root%s", agent.Process.Pid, opts.Dir)
	}
	dir, err := os.OpenRoot(at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	_ = host.Process.Kill()
	_ = host.Wait()
	linger(t)
	if next {
		c, err := guest.Connect(t.Context(), transport(t, fd, p.framed), opts)
		if err != nil {
			t.Fatal(err)
		}
		linger(t)
		unreplaced(t, dir)
		_ = c.Close()
	} else {
		_ = unix.Close(fd)
	}
	_ = agent.Wait()
	unreplaced(t, dir)
}

// TestInputOfADoorThatBreaks: the same for an agent that listens.
func TestInputOfADoorThatBreaks(t *testing.T) {
	h := build(t)
	for range 10 {
		c, d, err := h.host(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out := lines{make(chan string, 1)}
		p, err := c.Start(t.Context(), replacing(io.MultiReader(strings.NewReader("first\n"), neverReader{t.Context().Done()}), out))
		if err != nil {
			t.Fatal(err)
		}
		<-out.ch
		_ = d.Close()
		_, err = p.Wait(t.Context())
		wants(t, cove.Unavailable, err, "Wait")
		linger(t)
		again, _, err := h.host(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r, text, _ := run(t, &guestAt{again, "", nil}, sh("cat f.new; ls f; rm -f f f.new")); text != "first\n" {
			t.Fatalf("%q, %+v", text, r)
		}
		_ = again.Close()
	}
}

// TestInputThatBreaksOff: a program whose caller's reader fails is ended, and does not take
// that for the end of its input.
func TestInputThatBreaksOff(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		for range 5 {
			broken := iotest.ErrReader(errors.New("the caller is gone"))
			r, _, _ := run(t, c, replacing(io.MultiReader(strings.NewReader("first\n"), broken), io.Discard))
			if r.Outcome != cove.Killed {
				t.Fatalf("%+v", r)
			}
			if _, err := c.Files().Stat(t.Context(), "f"); cove.CodeOf(err) != cove.NotFound {
				t.Fatalf("the program made its file: %v", err)
			}
		}
	})
}

// TestInputInMemory: all of it arrives, whatever its size, and then the end.
func TestInputInMemory(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		for _, size := range []int{0, 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 300 << 10} {
			in := strings.NewReader(strings.Repeat("x", size+1))
			_, _ = in.ReadByte() // what was read before is none of it
			cmd := sh("wc -c")
			cmd.Stdin = in
			if r, out, _ := run(t, c, cmd); r.ExitCode != 0 || strings.TrimSpace(out) != fmt.Sprint(size) {
				t.Errorf("of %d bytes %q came, %+v", size, out, r)
			}
		}
	})
}
