//go:build linux

package guest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// greedy tries to have the ports of a way out, again and again, and writes down how
// often, and which it got.
const greedy = `
import os, socket, time
held, tries = [], 0
print("on", flush=True)
while True:
    for kind, port in (socket.SOCK_STREAM, 8080), (socket.SOCK_STREAM, 443), (socket.SOCK_STREAM, 53), (socket.SOCK_DGRAM, 53):
        s = socket.socket(socket.AF_INET, kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
            if kind == socket.SOCK_STREAM: s.listen()
            held.append((port, s))
        except OSError: s.close()
    tries += 1
    with open("new", "w") as f: f.write("%d %s" % (tries, [p for p, _ in held]))
    os.rename("new", "tries")
    time.sleep(0.001)
`

// TestGreedyProgram is about a program that outlives its host, and wants the ports of
// the way out: the next host finds them free all the same.
func TestGreedyProgram(t *testing.T) {
	h := build(t, named(t))
	first, door := h.enter()
	ways, err := first.Listen(t.Context(), true, 443, 8080)
	if err != nil {
		t.Fatal(err)
	}
	ready := lines{make(chan string, 1)}
	cmd := cove.Command{Argv: []string{"python3", "-c", greedy}, Keep: "greedy", Stdout: ready}
	if _, err := first.Start(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	<-ready.ch
	awaitTries(t, h, 10)
	if text := tries(t, h); !strings.HasSuffix(text, " []") {
		t.Errorf("beside its host a program got %s", text)
	}
	ways.Close()
	first.Leave()
	_ = door.cmd.Wait()
	awaitTries(t, h, 50)
	second, _ := h.enter()
	ways, err = second.Listen(t.Context(), true, 443, 8080)
	if err != nil {
		t.Fatal(err)
	}
	ways.Close()
	// A host that does not want them gives them back, when it starts programs.
	for n := 0; !strings.Contains(tries(t, h), "8080"); n++ {
		if _, out, _ := run(t, second, sh("echo on")); out != "on\n" || n > 100 {
			t.Fatalf("ports that nobody wants are not to be had: %q, %s", out, tries(t, h))
		}
		awaitTries(t, h, 2)
	}
	_, err = second.Listen(t.Context(), false, 8080)
	wants(t, cove.Conflict, err, "a port of a program")
}

// tries is what the program wrote down, seen from outside.
func tries(t *testing.T, h *house) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/workspace/tries", h.cmd.Process.Pid))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

// awaitTries waits for some more.
func awaitTries(t *testing.T, h *house, more int) {
	t.Helper()
	count := func() (n int) {
		_, _ = fmt.Sscanf(tries(t, h), "%d", &n) // 0 before the first
		return n
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for most := count() + more; count() < most; {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the program tries no more")
		}
	}
}
