package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// onDisk asks for a session with a workspace on disk.
func onDisk(size cove.Bytes, files int64) cove.Spec {
	return cove.Spec{Workspace: cove.Workspace{Kind: cove.WorkspaceDisk, Size: size, Files: files}}
}

// TestFilesOfDiskWorkspacesCount: room for inodes is taken from the disk, so it counts
// for the bound of the tenant and for the reserve.
func TestFilesOfDiskWorkspacesCount(t *testing.T) {
	w := newWorld(t)
	free := cove.GiB
	change := func(c *engine.Config) {
		c.TenantDisk, c.Free = 300*cove.MiB, func() (cove.Bytes, error) { return free, nil }
	}
	e := w.open(change)
	p := e.As(boss)
	many := onDisk(cove.MiB, 1_000_000)
	s := mustOpen(t, p, many)
	const takes = (cove.MiB+256_000_000)/32*33 + 4*cove.MiB
	counts := func(want cove.Bytes) {
		t.Helper()
		if got := tenantDisk(t, p, cove.DefaultTenant).Workspaces; got != want {
			t.Errorf("workspaces count as %d bytes, want %d", got, want)
		}
	}
	counts(takes)
	_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: many})
	wantCode(t, err, cove.Exhausted, cove.ReasonTenantDisk)
	w.shut(e, w.provider)
	p = w.open(change).As(boss)
	counts(takes)
	if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
		t.Fatal(err)
	}
	counts(0)
	free = 200 * cove.MiB
	_, err = p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: many})
	wantCode(t, err, cove.Exhausted, cove.ReasonDiskReserve)
}

// TestFilesOfDiskWorkspacesAreBounded by the size, with an error that names the field.
func TestFilesOfDiskWorkspacesAreBounded(t *testing.T) {
	p := openEngine(t).As(boss)
	for _, c := range []struct {
		spec cove.Spec
		ok   bool
	}{
		{onDisk(cove.MiB, 1<<20), true},
		{onDisk(cove.MiB, 1<<20+1), false},
		{onDisk(8*cove.GiB, 2<<20), true},
		{onDisk(8*cove.GiB, 2<<20+1), false},
		{onDisk(64*cove.TiB, 1<<32), false},
		{cove.Spec{Workspace: cove.Workspace{Size: cove.MiB, Files: 2 << 20}}, true}, // in memory
	} {
		_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: c.spec})
		if c.ok {
			if err != nil {
				t.Errorf("%+v: %v", c.spec.Workspace, err)
			}
			continue
		}
		wantCode(t, err, cove.Invalid, "")
		if e, _ := errors.AsType[*cove.Error](err); e == nil || e.Details["field"] != "workspace.files" || cove.RemedyOf(err) == "" {
			t.Errorf("%+v: the error is %v", c.spec.Workspace, err)
		}
	}
}

// TestDiskWorkspaceAtTheBound: a tenant at its bound stops a session with a workspace
// on disk, whose files need not fit twice, and starts it again; the reserve still holds.
func TestDiskWorkspaceAtTheBound(t *testing.T) {
	w := newWorld(t)
	free := cove.GiB
	p := w.open(func(c *engine.Config) {
		c.TenantDisk, c.Free = 9*cove.MiB, func() (cove.Bytes, error) { return free, nil }
	}).As(boss)
	s := mustOpen(t, p, onDisk(4*cove.MiB, 10))
	if err := p.Files(s.ID).Write(t.Context(), "big", strings.NewReader(strings.Repeat("x", 2<<20)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	fillUp(t, p, mustOpen(t, p, cove.Spec{}).ID)
	free = cove.MiB
	_, err := p.Sessions().Start(t.Context(), s.ID)
	wantCode(t, err, cove.Exhausted, cove.ReasonDiskReserve)
	free = cove.GiB
	if _, err := p.Sessions().Start(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if f, err := p.Files(s.ID).Stat(t.Context(), "big"); err != nil || f.Size != 2<<20 {
		t.Errorf("its file is %+v, %v", f, err)
	}
	if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil {
		t.Error(err)
	}
}
