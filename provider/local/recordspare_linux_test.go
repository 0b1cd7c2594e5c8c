package local_test

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// TestRecordedInASpare: interpreters that were started in a spare outlive the provider
// once they are marked, those that were forked with modules imported, too. One that was
// never marked ends.
func TestRecordedInASpare(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		linuxtest.Need(t, err)
	}
	cfg := local.Config{Dir: providertest.Dir(t), Keeper: true, Templates: preloads{}}
	p, err := local.New(cfg)
	must(t, err)
	closed := false
	t.Cleanup(func() {
		if !closed {
			_ = p.Close()
		}
	})
	providertest.Ready(t, p)
	const code = `import sys
print("decimal" in sys.modules, flush=True)
for line in sys.stdin: print("got", line.strip(), flush=True)`
	s := nestSpare(t, p)
	started := map[string]*planted{}
	for _, keep := range []string{"c-forked", "c-started", "c-unmarked"} {
		one := &planted{}
		cmd := command(one, code)
		cmd.Keep, cmd.Record = keep, true
		if keep == "c-forked" {
			ahead, _ := s.(cove.SparePreloader)
			one.Process, err = ahead.StartPreloaded(t.Context(), cmd, nestBound, []string{"decimal"})
		} else {
			starter, _ := s.(cove.SpareStarter)
			one.Process, err = starter.StartIn(t.Context(), cmd, nestBound)
		}
		must(t, err)
		started[keep] = one
	}
	box, err := s.Claim(t.Context(), cove.NewID(), cove.Spec{Template: "data", Resources: nestBound})
	must(t, err)
	want := map[string]string{"c-forked": "True\ngot a\n", "c-started": "False\ngot a\n"}
	r, ok := cove.As[cove.Recorder](box)
	if !ok {
		t.Fatal("the sandbox is no Recorder")
	}
	for keep, text := range want {
		_, err := io.WriteString(started[keep].in, "a\n")
		must(t, err)
		comesTo(t, started[keep].out.String, text)
		must(t, r.Mark(t.Context(), keep, cove.Mark{Note: []byte(keep), Stdout: int64(len(text))}))
	}
	must(t, p.Close())
	closed = true

	again, err := local.New(cfg)
	must(t, err)
	t.Cleanup(func() { _ = again.Close() })
	box = attach(t, again, box.ID())
	r, _ = cove.As[cove.Recorder](box)
	var names []string
	for k, err := range r.Kept(t.Context()) {
		must(t, err)
		names = append(names, k.Keep+" "+string(k.Note))
	}
	if got := strings.Join(names, ", "); got != "c-forked c-forked, c-started c-started" {
		t.Errorf("what is kept is %s", got)
	}
	for keep := range want {
		in, typed := io.Pipe()
		out := &safe{}
		proc, err := r.Resume(t.Context(), keep, cove.Command{Stdin: in, Stdout: out, Stderr: &safe{}, Record: true})
		must(t, err)
		_, err = io.WriteString(typed, "b\n")
		must(t, err)
		comesTo(t, out.String, "got b\n")
		must(t, r.Forget(t.Context(), keep))
		if _, err := proc.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		_ = typed.Close()
	}
	must(t, box.Destroy(context.WithoutCancel(t.Context())))
}

// comesTo waits until a text is as wanted.
func comesTo(t *testing.T, text func() string, want string) {
	t.Helper()
	late := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for text() != want {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("it is %q, want %q", text(), want)
		}
	}
}
