package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

// holding are the providers whose sandboxes outlive the server, with what each needs: the
// variable of the test run and the setting that it is for.
var holding = map[string][2]string{
	"local":  {},
	"gvisor": {"COVE_TEST_RUNSC", "COVE_GVISOR_RUNSC"},
	"docker": {"COVE_TEST_DOCKER_HOST", "DOCKER_HOST"},
}

// eachHolding runs a test with each of them that is ready here.
func eachHolding(t *testing.T, test func(t *testing.T, provider string)) {
	t.Helper()
	for _, provider := range slices.Sorted(maps.Keys(holding)) {
		t.Run(provider, func(t *testing.T) {
			if provider == "docker" {
				tier.Full(t, "gvisor has the same agent, behind the same door")
			}
			if provider == "local" {
				needLocal(t)
			} else if value := os.Getenv(holding[provider][0]); value == "" {
				t.Skip(holding[provider][0] + " is not set")
			} else {
				t.Setenv(holding[provider][1], value)
				t.Setenv("DOCKER_IMAGE", "cove-sandbox:test")
			}
			test(t, provider)
		})
	}
}

// hosting is a server whose executable can be the agent of any provider.
func hosting(t *testing.T, home, provider string) (end func(syscall.Signal)) {
	t.Helper()
	if provider == "local" {
		return server(t, home, provider)
	}
	return serverOf(t, program.Cove(t), home, provider)
}

// closeAll closes sessions of a test, also of one that failed, and stops its server.
func closeAll(t *testing.T, c *client.Client, end func(syscall.Signal), ids ...cove.ID) {
	t.Helper()
	for _, id := range ids {
		if _, err := c.Sessions().Close(context.WithoutCancel(t.Context()), id, false); err != nil {
			t.Error(err)
		}
	}
	end(syscall.SIGTERM)
}

// TestInputOfAKilledServer: programs read input, from a request that goes on or from one that
// was whole, and the server is killed or stopped. None of them takes that for the end of its
// input: what they replace with it is as it was.
func TestInputOfAKilledServer(t *testing.T) {
	eachHolding(t, func(t *testing.T, provider string) {
		home := filepath.Join(t.TempDir(), "home")
		end := hosting(t, home, provider)
		c := connect(t, home)
		s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { closeAll(t, c, end, s.ID) }()
		kills := 40
		if testing.Short() {
			kills = 6
		}
		for i := range kills {
			if err := c.Files(s.ID).Write(t.Context(), "f", strings.NewReader("good"), 0); err != nil {
				t.Fatal(err)
			}
			ended := reading(t, c, s.ID, i%3 == 1)
			want, sig := "good", syscall.SIGKILL
			if i%6 == 5 && (provider == "local" || !testing.Short()) { // a server that stops waits for its requests
				sig = syscall.SIGTERM
			}
			end(sig)
			if err := <-ended; err == nil && sig == syscall.SIGTERM {
				want = large
			} else if err == nil {
				t.Error("a program whose server was killed has a result")
			}
			end = hosting(t, home, provider)
			c = connect(t, home)
			if text := content(t, c, s.ID, "f"); text != want {
				t.Fatalf("after %d ends, the last with %v, the file has %d bytes, %.40q", i+1, sig, len(text), text)
			}
		}
	})
}

// content is that of a file.
func content(t *testing.T, c *client.Client, id cove.ID, name string) string {
	t.Helper()
	r, err := c.Files(id).Read(t.Context(), name, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// large is more input than a pipe takes.
var large = strings.Repeat("x", 1<<20-2)

// reading runs a program that replaces a file when it has read its input, and returns when
// it reads. Whole input is larger than a pipe, and the program takes its time.
func reading(t *testing.T, c *client.Client, id cove.ID, whole bool) <-chan error {
	t.Helper()
	line := `read -r l; echo reading; while read -r l; do :; done; echo new >f`
	var in io.Reader
	if whole {
		line = `read -r l; echo reading; sleep 0.2; cat >f.new && mv f.new f`
		in = strings.NewReader("l\n" + large)
	} else {
		r, w := io.Pipe()
		t.Cleanup(func() { _ = w.CloseWithError(errors.New("the test is over")) })
		go func() { _, _ = io.WriteString(w, "l\nnew") }()
		in = r
	}
	ready, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		_, err := c.Processes(id).Exec(context.WithoutCancel(t.Context()), cove.ExecRequest{Line: line, Stdin: in, OnOutput: func(cove.Chunk) {
			select {
			case ready <- struct{}{}:
			default:
			}
		}})
		ended <- err
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("the program does not read: %v", err)
	}
	return ended
}

// TestPausedSessionsOutliveTheServer: paused sessions with a program in the background are
// paused after each kill or stop of the server: the start waits for the answer of none. Then
// the programs go on, and nothing of their output is missing.
func TestPausedSessionsOutliveTheServer(t *testing.T) {
	eachHolding(t, func(t *testing.T, provider string) {
		home := filepath.Join(t.TempDir(), "home")
		end := hosting(t, home, provider)
		c := connect(t, home)
		var all []*living
		defer func() {
			var ids []cove.ID
			for _, l := range all {
				ids = append(ids, l.id)
			}
			closeAll(t, c, end, ids...)
		}()
		for range 3 {
			l := begin(t, c, home)
			all = append(all, l)
			l.count(t, c, 0, 60)
			if _, err := c.Snapshots().Pause(t.Context(), l.id); err != nil {
				t.Fatal(err)
			}
		}
		for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
			end(sig)
			end = hosting(t, home, provider)
			c = connect(t, home)
			for _, l := range all {
				if s, err := c.Sessions().Get(t.Context(), l.id); err != nil || s.State != cove.Paused {
					t.Fatalf("%+v, %v; want it paused", s, err)
				}
			}
		}
		for _, l := range all {
			if _, err := c.Snapshots().Resume(t.Context(), l.id); err != nil {
				t.Fatal(err)
			}
			l.count(t, c, 0, 200)
			l.finish(t, c)
		}
	})
}
