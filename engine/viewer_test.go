package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

// TestSeveralViewers: some read from the start, some join late, one never
// reads, and none of them holds up the program or the others.
func TestSeveralViewers(t *testing.T) {
	p := openEngine(t).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	tty := background(t, p, s.ID, cove.ExecRequest{
		Line: "stty -echo; echo ready; read l; seq 1 30000; stty size; read l; echo end", TTY: &cove.WindowSize{Cols: 80, Rows: 24},
	})
	lazyCtx, cancel := context.WithCancel(t.Context())
	lazy := make(chan struct{})
	go func() {
		defer close(lazy)
		for range p.Processes(s.ID).Connect(lazyCtx, tty.PID, 0) {
			<-lazyCtx.Done() // it never takes the second chunk
		}
	}()
	whole := make(chan string, 4)
	for range 3 {
		go func() {
			var text strings.Builder
			for c, err := range p.Processes(s.ID).Connect(t.Context(), tty.PID, 0) {
				if err != nil {
					text.WriteString(err.Error())
					break
				}
				text.Write(c.Data)
			}
			whole <- text.String()
		}()
	}
	if err := p.Processes(s.ID).Resize(t.Context(), tty.PID, cove.WindowSize{Cols: 100, Rows: 30}); err != nil {
		t.Fatal(err)
	}
	input := func(text string) {
		if err := p.Processes(s.ID).Input(t.Context(), tty.PID, []byte(text), false); err != nil {
			t.Error(err)
		}
	}
	follow(t, p, s.ID, tty.PID, 0, "ready\r\n")
	input("\n")
	follow(t, p, s.ID, tty.PID, 0, "30 100\r\n")
	late := make(chan string, 1)
	const from = 100_000
	go func() {
		var text strings.Builder
		for c, err := range p.Processes(s.ID).Connect(t.Context(), tty.PID, from) {
			if err != nil {
				text.WriteString(err.Error())
				break
			}
			text.Write(c.Data)
		}
		late <- text.String()
	}()
	input("\n")
	var all string
	for range 3 {
		got := <-whole
		if all == "" {
			all = got
		}
		if got != all || !strings.HasPrefix(got, "ready\r\n1\r\n") || !strings.HasSuffix(got, "30000\r\n30 100\r\nend\r\n") {
			t.Errorf("a viewer saw %d bytes, another %d", len(got), len(all))
		}
	}
	if got := <-late; got != all[from:] {
		t.Errorf("who joined late saw %d bytes, want %d", len(got), len(all)-from)
	}
	cancel()
	<-lazy
}
