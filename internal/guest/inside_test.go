//go:build linux

package guest_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
)

// TestKeepOverFrames is about programs that the agent itself keeps, from host to
// host.
func TestKeepOverFrames(t *testing.T) {
	h := build(t)
	h.opts.Memory = 64 * cove.MiB
	first, _ := h.enter()
	in, typed := io.Pipe()
	seen := make(chan string, 64)
	cmd := sh("while read x; do echo \"<$x>\"; echo wrong >&2; done; echo end; sleep 1000 & exit 5")
	cmd.Keep, cmd.Note, cmd.Stdin, cmd.Stdout = "reads", []byte("note"), in, lines{seen}
	if _, err := first.Start(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	_, err := first.Start(t.Context(), cmd)
	wants(t, cove.Conflict, err, "a name that is taken")
	missing := cove.Command{Argv: []string{"no-such-program"}, Keep: "missing"}
	p, err := first.Start(t.Context(), missing)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Wait(t.Context()); err != nil || r.ExitCode != 127 {
		t.Errorf("what is not there ended as %+v, %v", r, err)
	}
	_, err = first.Start(t.Context(), cove.Command{Argv: []string{"true"}, Dir: "/none", Keep: "nowhere"})
	wants(t, cove.Invalid, err, "a directory that is none")
	_, _ = io.WriteString(typed, "one\n")
	<-seen

	// The next host comes while the first still believes to be there.
	second, _ := h.enter()
	<-first.Done()
	if diff := cmp.Diff([]string{"missing:", "reads:note"}, keptBy(t, second)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	var out, errs strings.Builder
	p, err = second.Resume(t.Context(), "missing", cove.Command{Stdout: &out, Stderr: &errs})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Wait(t.Context()); err != nil || r.ExitCode != 127 || errs.String() != "cove: no-such-program: not found\n" {
		t.Errorf("what is not there ended as %+v, %v, with %q", r, err, errs.String())
	}
	if err := second.Forget(t.Context(), "missing"); err != nil {
		t.Error(err)
	}
	errs.Reset()
	p, err = second.Resume(t.Context(), "reads", cove.Command{Stdin: strings.NewReader("two\n"), Stdout: &out, Stderr: &errs})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Wait(t.Context())
	if err != nil || r.ExitCode != 5 || out.String() != "<one>\n<two>\nend\n" || errs.String() != "wrong\nwrong\n" {
		t.Errorf("it ended as %+v, %v, with %q and %q", r, err, out.String(), errs.String())
	}
	if err := second.Forget(t.Context(), "reads"); err != nil {
		t.Error(err)
	}
	if got := keptBy(t, second); len(got) != 0 {
		t.Errorf("kept are %v", got)
	}
	if err := second.Reconcile(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestKeptFlood: much output is kept from the first byte on, up to a bound, and who
// reads along gets all of it.
func TestKeptFlood(t *testing.T) {
	h := build(t)
	h.opts.Memory = 16 * cove.MiB
	c, _ := h.enter()
	const much = 200_000
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); done", much)
	var want strings.Builder
	for i := range much {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	var out strings.Builder
	cmd := sh(script)
	cmd.Keep, cmd.Stdout = "floods", &out
	p, err := c.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Wait(t.Context()); err != nil || out.String() != want.String() {
		t.Errorf("who reads along gets %d of %d bytes; %+v, %v", out.Len(), want.Len(), r, err)
	}
	again, _ := h.enter()
	out.Reset()
	p, err = again.Resume(t.Context(), "floods", cove.Command{Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Wait(t.Context())
	const share = 1 << 20
	if err != nil || out.Len() < share || out.Len() > share+512<<10 || !strings.HasPrefix(want.String(), out.String()[:share-128<<10]) || !strings.HasSuffix(out.String(), "line 199999\n") {
		t.Errorf("%d bytes are kept; %+v, %v", out.Len(), r, err)
	}
}

// TestKeptSilence: hosts that come and go while a program says nothing leave nobody
// behind who waits for it.
func TestKeptSilence(t *testing.T) {
	h := build(t)
	c, _ := h.enter()
	cmd := sh("echo ready; exec sleep 1000")
	cmd.Keep = "silent"
	if _, err := c.Start(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		c, _ = h.enter()
		seen := make(chan string, 64)
		if _, err := c.Resume(t.Context(), "silent", cove.Command{Stdout: lines{seen}}); err != nil {
			t.Fatal(err)
		}
		if s := <-seen; s != "ready" {
			t.Fatalf("it said %q", s)
		}
	}
	p, err := c.Resume(t.Context(), "silent", cove.Command{Limits: cove.Limits{Wall: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Wait(t.Context()); err != nil || r.Outcome != cove.TimedOut {
		t.Errorf("it ended as %+v, %v", r, err)
	}
}

// TestNobodyKeeps: who looks for what no agent holds is told so.
func TestNobodyKeeps(t *testing.T) {
	h := build(t)
	c, _ := h.enter()
	_, err := c.Resume(t.Context(), "none", cove.Command{})
	wants(t, cove.NotFound, err, "a program that is not kept")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cmd := sh("sleep 1000")
	cmd.Keep = "late"
	if _, err := c.Start(ctx, cmd); err == nil {
		t.Error("a program was started for nobody")
	}
	huge := cove.Command{Argv: []string{"true", strings.Repeat("x", 5<<20)}, Keep: "huge"}
	p, err := c.Start(t.Context(), huge)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Wait(t.Context()); err != nil || r.ExitCode != 126 {
		t.Errorf("too many arguments ended as %+v, %v", r, err)
	}
	_ = c.Close()
	_, err = c.Start(t.Context(), cmd)
	wants(t, cove.NotFound, err, "a sandbox that is gone")
	for _, err := range c.Kept(t.Context()) {
		wants(t, cove.NotFound, err, "what is kept there")
	}
}
