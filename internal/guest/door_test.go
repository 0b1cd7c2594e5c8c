//go:build linux

package guest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// enter is host for tests that want one.
func (h *house) enter() (*guestAt, *duplex) {
	h.t.Helper()
	c, d, err := h.host(h.t.Context())
	if err != nil {
		h.t.Fatalf("a door: %v\n%s", err, h.errs)
	}
	h.t.Cleanup(func() {
		_ = c.Shutdown(context.Background()) // none is left to those whose host has left
		_ = d.cmd.Wait()
	})
	return &guestAt{c, h.opts.Dir, nil}, d
}

func TestDoor(t *testing.T) {
	h := build(t)
	c, d := h.enter()
	if c.PID() != 1 {
		t.Errorf("the agent is process %d", c.PID())
	}
	if r, out, _ := run(t, c, sh("id -u; cat /proc/self/oom_score_adj /proc/1/oom_score_adj")); r.ExitCode != 0 || out != "1000\n500\n0\n" {
		t.Errorf("a program ended as %+v and said %q", r, out)
	}
	if u, err := c.Usage(t.Context()); err != nil || u.PIDs != 0 {
		t.Errorf("nobody is there, and the usage is %+v, %v", u, err)
	}
	_ = c.Close()
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("the door ended with %v", err)
	}
	// A door that ends takes its host with it, and the agent stays.
	c, d = h.enter()
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	_ = d.cmd.Wait()
	c, _ = h.enter()
	if err := c.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := h.cmd.Wait(); err != nil || h.errs.Len() > 0 {
		t.Errorf("the agent ended with %v and said %q", err, h.errs)
	}
}

// TestHostAfterHost is about an agent that has several hosts, one after the other:
// each ends the one before, with all that this one started.
func TestHostAfterHost(t *testing.T) {
	h := build(t)
	first, d := h.enter()
	p, err := first.Start(t.Context(), sh("trap '' HUP; sleep 2000 & setsid sleep 2000 & wait"))
	if err != nil {
		t.Fatal(err)
	}
	watching := make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		for change, err := range first.Files().Watch(t.Context(), ".") {
			if change.Kind == cove.Watching {
				close(ready)
			}
			if err != nil {
				watching <- err
			}
		}
	}()
	<-ready
	second, _ := h.enter()
	<-first.Done()
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("the first door ended with %v", err)
	}
	_, err = p.Wait(t.Context())
	wants(t, cove.Unavailable, err, "a program of the first host")
	wants(t, cove.Unavailable, <-watching, "its watch")
	if _, out, _ := run(t, second, sh("cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c '^2000$'")); out != "0\n" {
		t.Errorf("%s programs of the first host are left", out)
	}
}

// TestHostKilledMidFrame is about a host that ends in the middle of a sentence: the
// next one is understood.
func TestHostKilledMidFrame(t *testing.T) {
	h := build(t)
	frame := []byte{1, 0}                   // a message
	frame = append(frame, 0xff, 0x01, 2, 0) // of 255 bytes, of which some are missing
	for cut := 1; cut <= len(frame); cut++ {
		d := h.door(0)
		if _, err := guest.Door(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Write(frame[:cut]); err != nil {
			t.Fatal(err)
		}
		_ = d.Close()
		if err := d.cmd.Wait(); err != nil {
			t.Errorf("the door ended with %v", err)
		}
	}
	// What is no frame at all ends the host, and nobody else.
	d := h.door(0)
	if _, err := guest.Door(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(d, strings.Repeat("GET / HTTP/1.1\r\n\r\n", 20)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the agent says something: %v", err)
	}
	_ = d.Close()
	c, _ := h.enter()
	if r, out, _ := run(t, c, sh("echo hi")); r.ExitCode != 0 || out != "hi\n" {
		t.Errorf("%+v, %q", r, out)
	}
}

// TestDoorRefusesPrograms: what a program says at the agent's socket is not heard.
func TestDoorRefusesPrograms(t *testing.T) {
	h := build(t)
	c, _ := h.enter()
	for _, uid := range []int{sandboxUser, 65534} {
		d := h.door(uid)
		_, err := guest.Door(t.Context(), d)
		wants(t, cove.Unavailable, err, "a door of somebody else")
		if err := d.cmd.Wait(); err == nil {
			t.Error("the door was opened")
		}
	}
	const crowd = `
import socket
many = []
for i in range(500):
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0cove-agent")
    many.append(s)
for s in many:
    try:
        s.sendall(b"+")
        assert s.recv(1) == b""
    except (BrokenPipeError, ConnectionResetError):
        pass
try:
    socket.socket(socket.AF_UNIX).bind("\0cove-agent")
except OSError as e:
    print(e.strerror)
`
	if r, out, errs := run(t, c, cove.Command{Argv: []string{"python3", "-c", crowd}}); r.ExitCode != 0 || out != "Address already in use\n" {
		t.Errorf("%+v, %q, %q", r, out, errs)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("the host is gone: %v", err)
	}
}

// TestNoDoor is about what is not an agent behind a door.
func TestNoDoor(t *testing.T) {
	for name, said := range map[string]string{
		"nothing":      "",
		"an error":     "OCI runtime exec failed: exec failed: container not running\n",
		"half a magic": protocol.Magic[:3],
		"a flood":      strings.Repeat("x", 1<<20),
	} {
		host, engine := net.Pipe()
		go func() {
			_, _ = io.WriteString(engine, said)
			_ = engine.Close()
		}()
		_, err := guest.Door(t.Context(), host)
		wants(t, cove.Unavailable, err, name)
		if text := strings.TrimSpace(said); len(text) < 100 && text != "" && !strings.Contains(errors.Unwrap(err).Error(), text) {
			t.Errorf("%s: the cause is %v", name, errors.Unwrap(err))
		}
	}
	host, engine := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.WriteString(engine, "wait")
		cancel()
	}()
	if _, err := guest.Door(ctx, host); !errors.Is(err, context.Canceled) {
		t.Errorf("whoever waits no more gets %v", err)
	}
	if _, err := engine.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the door is open: %v", err)
	}
}

// TestDoorAfterNoise: what an engine says before the agent does is not the agent's.
func TestDoorAfterNoise(t *testing.T) {
	h := build(t)
	d := h.door(0)
	d.Reader = io.MultiReader(strings.NewReader("a warning of the engine\n"), d.Reader)
	tr, err := guest.Door(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	c, err := guest.Connect(t.Context(), tr, h.opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	_ = c.Close()
}

// TestDoorOfASocket: engines may have one descriptor for both directions.
func TestDoorOfASocket(t *testing.T) {
	h := build(t)
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "door")
	d := h.doorOn(0, theirs, theirs)
	_ = theirs.Close()
	_ = unix.SetNonblock(fds[0], true)
	tr, err := guest.Door(t.Context(), os.NewFile(uintptr(fds[0]), "host"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := guest.Connect(t.Context(), tr, h.opts)
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("0123456789abcdef", 64<<10)
	if r, out, _ := run(t, &guestAt{c, "", nil}, cove.Command{Argv: []string{"cat"}, Stdin: strings.NewReader(big)}); r.ExitCode != 0 || out != big {
		t.Errorf("%+v, %d bytes", r, len(out))
	}
	_ = c.Close()
	if err := d.Wait(); err != nil {
		t.Errorf("the door ended with %v", err)
	}
}
