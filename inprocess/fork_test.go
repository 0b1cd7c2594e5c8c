package inprocess_test

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/platformtest"
)

// TestFullForkComesBack: a fork of a real sandbox is filled up, stopped because somebody
// else needs its room, and comes back with all its files.
func TestFullForkComesBack(t *testing.T) {
	needLocal(t)
	h := openHarness(t, "local", platformtest.Options{MaxSessions: 2, Evict: true}, platformtest.Extras{})
	t.Cleanup(h.Close)
	p := h.As(cove.Principal{Name: "boss", Scopes: []cove.Scope{cove.ScopeAll}})
	ctx := t.Context()
	open := func() cove.ID {
		t.Helper()
		s, err := p.Sessions().Open(ctx, cove.OpenRequest{Spec: cove.Spec{Workspace: cove.Workspace{Size: cove.MiB, Files: 500}}})
		if err != nil {
			t.Fatal(err)
		}
		return s.ID
	}
	line := func(id cove.ID, line string) string {
		t.Helper()
		x, err := p.Processes(id).Exec(ctx, cove.ExecRequest{Line: line})
		if err != nil {
			t.Fatal(err)
		}
		return string(x.Stdout.Data)
	}
	const look = "find . | wc -l; find . -type f | sort | xargs cat | cksum"
	const fill = "mkdir more; for i in {1..400}; do echo $i > more/$i || break; done 2>/dev/null; head -c 2000000 /dev/zero > full 2>/dev/null; "
	base := open()
	if got := line(base, `mkdir d; for i in {1..100}; do echo $i > d/$i; done; head -c 400000 /dev/zero > zeros; find . | wc -l`); got != "103\n" {
		t.Fatalf("the first has %q", got)
	}
	twin, err := p.Snapshots().Fork(ctx, base, cove.ForkRequest{})
	if err != nil {
		t.Fatal(err)
	}
	had := line(twin.ID, fill+look)
	line(base, "true") // the fork is the one that was used least lately
	third := open()
	s, err := p.Sessions().Get(ctx, twin.ID)
	if err != nil || s.State != cove.Stopped {
		t.Fatalf("the fork is %+v, %v", s, err)
	}
	_, err = p.Sessions().Start(ctx, twin.ID)
	if err != nil {
		t.Fatalf("the fork cannot be started again: %v", err)
	}
	if got := line(twin.ID, look); got != had {
		t.Errorf("the fork has %q; it had %q", got, had)
	}
	if files, _, _ := strings.Cut(had, "\n"); len(files) != 3 || files > "501" { // with the directory itself
		t.Errorf("the fork had %s files, and may have 500", files)
	}
	for _, id := range []cove.ID{base, twin.ID, third} {
		if _, err := p.Sessions().Close(ctx, id, false); err != nil {
			t.Error(err)
		}
	}
}
