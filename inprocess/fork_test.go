package inprocess_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/inprocess"
	"github.com/cove-sandbox/cove/platformtest"
	"github.com/cove-sandbox/cove/store/sqlite"
)

// TestFullForkComesBack: a fork of a real sandbox is filled up, stopped because a caller
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

// TestFilesBeyondTheMemoryComeBack: a session whose saved files take more than its
// workspace and its memory may have is started with room for them.
func TestFilesBeyondTheMemoryComeBack(t *testing.T) {
	needLocal(t)
	cfg := inprocess.Config{Home: filepath.Join(t.TempDir(), "home"), Provider: "local", Settings: settings()}
	p := open(t, cfg)
	ctx := t.Context()
	s, err := p.Sessions().Open(ctx, cove.OpenRequest{Spec: cove.Spec{
		Workspace: cove.Workspace{Size: 48 * cove.MiB}, Resources: cove.Resources{Memory: 128 * cove.MiB},
	}})
	if err != nil {
		t.Fatal(err)
	}
	const content = 40 << 20
	if err := p.Files(s.ID).Write(ctx, "zeros", bytes.NewReader(make([]byte, content)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Sessions().Stop(ctx, s.ID); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(ctx, filepath.Join(cfg.Home, "cove.db"))
	if err != nil {
		t.Fatal(err)
	}
	rec, err := store.GetSession(ctx, s.ID)
	if err == nil {
		rec.Spec.Workspace.Size, rec.Spec.Resources.Memory = cove.MiB, 32*cove.MiB
		err = store.PutSession(ctx, rec)
	}
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	p = open(t, cfg)
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := p.Sessions().Start(ctx, s.ID); err != nil {
		t.Fatal(err)
	}
	x, err := p.Processes(s.ID).Exec(ctx, cove.ExecRequest{Line: "wc -c < zeros; echo more > more"})
	if err != nil || string(x.Stdout.Data) != strconv.Itoa(content)+"\n" || x.ExitCode == 0 {
		t.Errorf("the session says %+v, %v", x, err)
	}
	if _, err := p.Sessions().Close(ctx, s.ID, false); err != nil {
		t.Error(err)
	}
}
