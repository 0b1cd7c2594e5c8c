//go:build linux

package guest_test

import (
	"net"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// TestManyDials is about visitors of a port who all stay: they take room from each
// other, and neither the sandbox nor its programs.
func TestManyDials(t *testing.T) {
	h := build(t)
	c, _ := h.enter()
	const script = `
import resource, socket, time
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
s = socket.socket(); s.bind(("127.0.0.1", 8080)); s.listen(1024)
print("on", flush=True)
many = []
while True: many.append(s.accept())
`
	ready := lines{make(chan string, 1)}
	if _, err := c.Start(t.Context(), cove.Command{Argv: []string{"python3", "-c", script}, Stdout: ready}); err != nil {
		t.Fatal(err)
	}
	<-ready.ch
	var held []net.Conn
	defer func() {
		for _, conn := range held {
			_ = conn.Close()
		}
	}()
	var refused error
	for len(held) < 3000 && refused == nil {
		conn, err := c.Dial(t.Context(), 8080)
		if refused = err; err == nil {
			held = append(held, conn)
		}
	}
	wants(t, cove.Exhausted, refused, "one visitor too many")
	if len(held) < 256 {
		t.Errorf("only %d visitors find room", len(held))
	}
	if r, out, _ := run(t, c, cove.Command{Argv: []string{"echo", "on"}}); out != "on\n" {
		t.Errorf("beside them a program gives %+v, %q", r, out)
	}
	for _, conn := range held[:8] {
		_ = conn.Close()
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for conn, err := c.Dial(t.Context(), 8080); ; conn, err = c.Dial(t.Context(), 8080) {
		if err == nil {
			held = append(held, conn)
			return
		}
		wants(t, cove.Exhausted, err, "while they leave")
		<-tick.C
	}
}
