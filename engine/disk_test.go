package engine_test

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/artifact"
)

// diskBound is what the tenants of these tests may keep.
const diskBound = cove.MiB

func bounded(c *engine.Config) { c.TenantDisk = diskBound }

// greedy is another tenant than that of boss.
var greedy = cove.Principal{Name: "greedy", Tenant: "greedy", Scopes: []cove.Scope{cove.ScopeAll}}

// tenantDisk is what a tenant keeps.
func tenantDisk(t *testing.T, p cove.Platform, tenant string) cove.DiskUse {
	t.Helper()
	r, err := p.Admin().Tenant(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	return r.Disk
}

// usedUp wants a refusal that says what the tenant keeps.
func usedUp(t *testing.T, p cove.Platform, tenant string, err error) {
	t.Helper()
	wantCode(t, err, cove.Exhausted, cove.ReasonTenantDisk)
	e, ok := errors.AsType[*cove.Error](err)
	if !ok || !strings.Contains(e.Message, "this needs at least ") {
		t.Fatalf("the error is %v", err)
	}
	report, rerr := p.Admin().Tenant(t.Context(), tenant)
	if rerr != nil {
		t.Fatal(rerr)
	}
	use := report.Disk
	by, _ := e.Details["held"].(map[string]int64)
	for kind, n := range map[string]cove.Bytes{
		"snapshots": use.Snapshots, "archives": use.Archives, "output": use.Output, "artifacts": use.Artifacts, "workspaces": use.Workspaces,
	} {
		if got, ok := by[kind]; !ok || cove.Bytes(got) != n {
			t.Errorf("the refusal says %d bytes of %s, the report %d", got, kind, n)
		}
		remedy := map[string]string{
			"snapshots": "delete snapshots", "archives": "close stopped sessions", "output": "end programs", "artifacts": "artifacts", "workspaces": "stop or close",
		}[kind]
		if want := n > 0 && kind != "artifacts"; want != strings.Contains(cove.RemedyOf(err), remedy) {
			t.Errorf("with %d bytes of %s the remedy is %q", n, kind, cove.RemedyOf(err))
		}
	}
	if e.Details["bound"] != int64(report.MaxDisk) {
		t.Errorf("the bound is %v", e.Details["bound"])
	}
}

// works has a tenant use all that needs the disk.
func works(t *testing.T, p cove.Platform) {
	t.Helper()
	s := mustOpen(t, p, cove.Spec{})
	if got := sh(t, p, s.ID, "echo hello > file; cat file"); got != "hello\n" {
		t.Errorf("the program wrote %q", got)
	}
	saved, err := p.Snapshots().Snapshot(t.Context(), s.ID, cove.SnapshotRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Snapshots().Delete(t.Context(), saved.ID); err != nil {
		t.Error(err)
	}
	if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil {
		t.Error(err)
	}
	if _, err := p.Sessions().Start(t.Context(), s.ID); err != nil {
		t.Error(err)
	}
	if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
		t.Error(err)
	}
}

// filling is one way to fill the disk.
type filling struct {
	bound cove.Bytes // of the tenant; 0 is diskBound
	more  func(t *testing.T, p cove.Platform, id cove.ID) error
	kind  func(cove.DiskUse) cove.Bytes
	free  func(t *testing.T, p cove.Platform, id cove.ID)
}

// fillings are all ways.
func fillings() map[string]filling {
	closeAll := func(t *testing.T, p cove.Platform, _ cove.ID) {
		t.Helper()
		for s, err := range p.Sessions().List(t.Context(), cove.SessionFilter{}) {
			if err == nil {
				_, err = p.Sessions().Close(t.Context(), s.ID, false)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	return map[string]filling{
		"snapshots": {
			more: func(t *testing.T, p cove.Platform, id cove.ID) error {
				_, err := p.Snapshots().Snapshot(t.Context(), id, cove.SnapshotRequest{})
				return err
			},
			kind: func(u cove.DiskUse) cove.Bytes { return u.Snapshots },
			free: func(t *testing.T, p cove.Platform, _ cove.ID) {
				for s, err := range p.Snapshots().List(t.Context(), cove.SnapshotFilter{}) {
					if err == nil {
						err = p.Snapshots().Delete(t.Context(), s.ID)
					}
					if err != nil {
						t.Error(err)
					}
				}
			},
		},
		"archives": {
			more: func(t *testing.T, p cove.Platform, _ cove.ID) error {
				s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
				if err == nil {
					_, err = p.Sessions().Stop(t.Context(), s.ID)
				}
				return err
			},
			kind: func(u cove.DiskUse) cove.Bytes { return u.Archives },
			free: closeAll,
		},
		"workspaces": {
			bound: 16 * cove.MiB,
			more: func(t *testing.T, p cove.Platform, _ cove.ID) error {
				_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: onDisk(200*cove.KiB, 10)})
				return err
			},
			kind: func(u cove.DiskUse) cove.Bytes { return u.Workspaces },
			free: closeAll,
		},
	}
}

// TestTenantDisk: whatever a tenant fills its bound with, it is refused then and told
// what it keeps; other tenants go on; the count outlives the server; and what is
// removed is free again.
func TestTenantDisk(t *testing.T) {
	for name, fill := range fillings() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			dir := t.TempDir()
			change := func(c *engine.Config) {
				c.TenantDisk = cmp.Or(fill.bound, diskBound)
				c.Artifacts = artifact.New(dir, artifact.Config{When: artifact.Always})
			}
			e := w.open(change)
			p := e.As(greedy)
			s := mustOpen(t, p, cove.Spec{})
			var err error
			for range 100 {
				if err = fill.more(t, p, s.ID); err != nil {
					break
				}
			}
			usedUp(t, p, greedy.Tenant, err)
			use := tenantDisk(t, p, greedy.Tenant)
			if n := fill.kind(use); n < cmp.Or(fill.bound, diskBound)/2 || use.Sum() > cmp.Or(fill.bound, diskBound)+256*cove.KiB {
				t.Errorf("it keeps %s, of that %s of the kind", use.Sum(), n)
			}
			if left := tenantDisk(t, e.As(boss), cove.DefaultTenant); left != (cove.DiskUse{}) {
				t.Errorf("the other tenant keeps %+v", left)
			}
			works(t, e.As(boss))

			w.shut(e, w.provider)
			e = w.open(change)
			p = e.As(greedy)
			if again := tenantDisk(t, p, greedy.Tenant); again != use {
				t.Errorf("after a restart it keeps %+v, before %+v", again, use)
			}
			usedUp(t, p, greedy.Tenant, fill.more(t, p, s.ID))
			works(t, e.As(boss))
			fill.free(t, p, s.ID)
			if n := fill.kind(tenantDisk(t, p, greedy.Tenant)); n != 0 {
				t.Errorf("after all was removed it keeps %s", n)
			}
			works(t, p)
		})
	}
}

// TestTenantDiskOfOne: a bound of the tenant's own takes the place of the setting.
func TestTenantDiskOfOne(t *testing.T) {
	e := openEngine(t, bounded)
	p := e.As(greedy)
	s := mustOpen(t, p, cove.Spec{})
	fill := fillings()["snapshots"]
	set := func(n cove.Bytes) {
		t.Helper()
		if err := p.Admin().SetTenant(t.Context(), cove.Tenant{Name: greedy.Tenant, Quota: cove.Bounds{Disk: n}}); err != nil {
			t.Fatal(err)
		}
	}
	set(64 * cove.KiB)
	if err := fill.more(t, p, s.ID); err != nil {
		t.Fatal(err)
	}
	wantCode(t, fill.more(t, p, s.ID), cove.Exhausted, cove.ReasonTenantDisk)
	set(200 * cove.KiB)
	if err := fill.more(t, p, s.ID); err != nil {
		t.Error(err)
	}
	if r, err := p.Admin().Tenant(t.Context(), greedy.Tenant); err != nil || r.MaxDisk != 200*cove.KiB {
		t.Errorf("%+v, %v", r, err)
	}
	set(0)
	if r, err := p.Admin().Tenant(t.Context(), greedy.Tenant); err != nil || r.MaxDisk != diskBound {
		t.Errorf("%+v, %v", r, err)
	}
}

// fillUp leaves a tenant less room than anything takes.
func fillUp(t *testing.T, p cove.Platform, id cove.ID) {
	t.Helper()
	fill := fillings()["snapshots"]
	for fill.more(t, p, id) == nil {
	}
}

// TestStopBeyondTheDisk: the session that cannot be stopped is refused before its
// programs are ended, and goes on with its files; so is one whose time is up, until
// there is room.
func TestStopBeyondTheDisk(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{OnEnd: cove.EndStop, FixedEnd: true, Idle: time.Hour})
		sh(t, p, s.ID, "echo precious > file")
		pr := background(t, p, s.ID, cove.ExecRequest{Line: "sleep 100000"})
		fillUp(t, p, s.ID)
		running := func(when string) {
			t.Helper()
			if got := state(t, p, s.ID); got != cove.Running {
				t.Errorf("%s the session is %s", when, got)
			}
			if got := processes(t, p, s.ID); len(got) != 1 || got[0].PID != pr.PID || !got[0].Running {
				t.Errorf("%s its programs are %+v", when, got)
			}
		}
		_, err := p.Sessions().Stop(t.Context(), s.ID)
		usedUp(t, p, cove.DefaultTenant, err)
		if !strings.Contains(cove.MessageOf(err), "the session runs on") {
			t.Errorf("the message is %q", cove.MessageOf(err))
		}
		running("after the stop")
		<-time.After(5 * time.Hour)
		running("after its time")
		fillings()["snapshots"].free(t, p, s.ID)
		<-time.After(2 * time.Minute)
		if got := state(t, p, s.ID); got != cove.Stopped {
			t.Errorf("when there is room it is %s", got)
		}
		fillUp(t, p, mustOpen(t, p, cove.Spec{}).ID)
		if _, err := p.Sessions().Start(t.Context(), s.ID); err != nil { // its archive gives room
			t.Fatal(err)
		}
		if got := tenantDisk(t, p, cove.DefaultTenant).Archives; got != 0 {
			t.Errorf("archives of %s are counted", got)
		}
		r, err := p.Files(s.ID).Stat(t.Context(), "file")
		if err != nil || r.Size != 9 {
			t.Errorf("its file is %+v, %v", r, err)
		}
	}, bounded, func(c *engine.Config) { c.OutputKept = 100 * cove.KiB })
}

// lying sandboxes say that their files take nothing.
type lying struct{ cove.Provider }

type lyingBox struct{ cove.Sandbox }

func (p lying) Unwrap() cove.Provider { return p.Provider }

func (p lying) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	s, err := p.Provider.Create(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	return lyingBox{s}, nil
}

func (b lyingBox) Unwrap() cove.Sandbox { return b.Sandbox }

func (lyingBox) Usage(context.Context) (cove.Usage, error) { return cove.Usage{}, nil }

// TestDiskIsCountedAsItIsWritten: a sandbox whose files take more than it says goes no
// further than the bound, with an archive and with a snapshot.
func TestDiskIsCountedAsItIsWritten(t *testing.T) {
	w := newWorld(t)
	p := w.open(bounded, func(c *engine.Config) { c.Providers = []cove.Provider{lying{c.Providers[0]}} }).As(greedy)
	s := mustOpen(t, p, cove.Spec{})
	if err := p.Files(s.ID).Write(t.Context(), "big", strings.NewReader(strings.Repeat("x", 2<<20)), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := p.Sessions().Stop(t.Context(), s.ID)
	usedUp(t, p, greedy.Tenant, err)
	usedUp(t, p, greedy.Tenant, fillings()["snapshots"].more(t, p, s.ID))
	if use := tenantDisk(t, p, greedy.Tenant); use != (cove.DiskUse{}) {
		t.Errorf("what was refused is counted: %+v", use)
	}
	for _, dir := range []string{w.dir + "/archives", w.dir + "/fake/.snapshots"} {
		if names := namesIn(t, dir, ""); len(names) != 0 {
			t.Errorf("%v is left in %s", names, dir)
		}
	}
	if got := sh(t, p, s.ID, "wc -c < big"); strings.TrimSpace(got) != "2097152" {
		t.Errorf("the file has %q bytes", got)
	}
}

// TestOutputBeyondTheDisk: the program goes on, and its output says how much of it is
// not kept.
func TestOutputBeyondTheDisk(t *testing.T) {
	p := openEngine(t, bounded).As(greedy)
	s := mustOpen(t, p, cove.Spec{})
	x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "seq 1 300000"})
	if err != nil || x.Outcome != cove.Exited || x.ExitCode != 0 || x.OutputID == "" {
		t.Fatalf("%+v, %v", x, err)
	}
	page, err := p.Processes(s.ID).Output(t.Context(), x.OutputID, cove.OutputRange{})
	if err != nil || page.Total+page.Dropped != x.Stdout.Bytes || page.Dropped < int64(diskBound/2) || page.Total < int64(diskBound/2) {
		t.Errorf("of %d bytes %d are kept and %d are not (%v)", x.Stdout.Bytes, page.Total, page.Dropped, err)
	}
	sh(t, p, s.ID, "true") // it makes room for what comes
}

// TestKeptProgramsSetDiskAside: what the provider may write of a background program is
// taken before it starts, and given back when it has ended.
func TestKeptProgramsSetDiskAside(t *testing.T) {
	const each = 400 * cove.KiB
	w := newWorld(t)
	change := []func(*engine.Config){bounded, func(c *engine.Config) { c.OutputKept = each }}
	e := w.open(change...)
	p := e.As(greedy)
	s := mustOpen(t, p, cove.Spec{})
	sleeper := cove.ExecRequest{Line: "sleep 100000"}
	first := background(t, p, s.ID, sleeper)
	background(t, p, s.ID, sleeper)
	_, err := p.Processes(s.ID).Start(t.Context(), sleeper)
	usedUp(t, p, greedy.Tenant, err)
	w.shut(e, w.provider)
	p = w.open(change...).As(greedy)
	if got := tenantDisk(t, p, greedy.Tenant).Output; got != 2*each {
		t.Errorf("after a restart %s are set aside", got)
	}
	if err := p.Processes(s.ID).Signal(t.Context(), first.PID, "SIGKILL"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Processes(s.ID).Wait(t.Context(), first.PID); err != nil {
		t.Fatal(err)
	}
	if got := tenantDisk(t, p, greedy.Tenant).Output; got != each {
		t.Errorf("when one has ended %s are set aside", got)
	}
	background(t, p, s.ID, sleeper)
	if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if got := tenantDisk(t, p, greedy.Tenant).Output; got != 0 {
		t.Errorf("when the session is stopped %s are set aside", got)
	}
}

// TestDiskReserve: below the reserve nothing that tenants keep is written, whatever
// their own bounds; all else goes on.
func TestDiskReserve(t *testing.T) {
	w := newWorld(t)
	free := cove.Bytes(math.MaxInt64)
	p := w.open(func(c *engine.Config) {
		c.DiskReserve = 10 * cove.MiB
		c.Free = func() (cove.Bytes, error) { return free, nil }
	}).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "seq 1 20000"})
	if err != nil || x.OutputID == "" {
		t.Fatalf("%+v, %v", x, err)
	}
	works(t, p)
	free = 10*cove.MiB + 10
	for name, do := range map[string]func() error{
		"snapshot": func() error { return fillings()["snapshots"].more(t, p, s.ID) },
		"stop":     func() error { _, err := p.Sessions().Stop(t.Context(), s.ID); return err },
		"volume":   func() error { _, err := p.Volumes().Create(t.Context(), cove.VolumeRequest{Name: "v"}); return err },
		"start": func() error {
			_, err := p.Processes(s.ID).Start(t.Context(), cove.ExecRequest{Line: "sleep 1"})
			return err
		},
		"disk": func() error { return fillings()["workspaces"].more(t, p, s.ID) },
	} {
		err := do()
		wantCode(t, err, cove.Exhausted, cove.ReasonDiskReserve)
		if !strings.Contains(cove.MessageOf(err), "the last 10m are for") || cove.RemedyOf(err) == "" {
			t.Errorf("%s: the message is %q", name, cove.MessageOf(err))
		}
	}
	before, err := fs.ReadDir(w.output.FS(), ".")
	if err != nil {
		t.Fatal(err)
	}
	x, err = p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "seq 1 20000"})
	if err != nil || x.ExitCode != 0 || !x.Stdout.Truncated || x.OutputID != "" || x.Stdout.Bytes != 108894 {
		t.Errorf("%+v, %v", x, err)
	}
	after, err := fs.ReadDir(w.output.FS(), ".")
	if err != nil || len(after) != len(before) {
		t.Errorf("output was kept: %v, %v", after, err)
	}
	if _, err := p.Sessions().Close(t.Context(), mustOpen(t, p, cove.Spec{}).ID, false); err != nil {
		t.Error(err)
	}
	free = math.MaxInt64
	works(t, p)
}

// TestArtifactsRefuseNothing: they are kept while all that the tenant keeps is within
// its bound, and work goes on when they are not.
func TestArtifactsRefuseNothing(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	p := w.open(bounded, func(c *engine.Config) { c.Artifacts = artifact.New(dir, artifact.Config{When: artifact.Always}) }).As(greedy)
	s := mustOpen(t, p, cove.Spec{})
	for range 30 {
		_, err := p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "calc", Code: "1 + 1 " + strings.Repeat("#", 60<<10)})
		if err != nil {
			t.Fatal(err)
		}
	}
	if use := tenantDisk(t, p, greedy.Tenant); use.Artifacts < diskBound/2 || use.Sum() > diskBound+64*cove.KiB {
		t.Errorf("it keeps %+v", use)
	}
	if !slices.Contains(journalOf(t, w, s.ID), "artifact.failed") {
		t.Error("the journal does not say that code was not kept")
	}
	works(t, p)
	fillUp(t, p, s.ID)
	usedUp(t, p, greedy.Tenant, fillings()["snapshots"].more(t, p, s.ID))
}

// TestArtifactsBelowTheReserve are not kept, and the journal says so.
func TestArtifactsBelowTheReserve(t *testing.T) {
	w := newWorld(t)
	kept := &shelf{}
	p := w.open(func(c *engine.Config) {
		c.Artifacts, c.Free = kept, func() (cove.Bytes, error) { return 0, nil }
	}).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	if _, err := p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "calc", Code: "1 + 1"}); err != nil {
		t.Fatal(err)
	}
	if len(kept.put) != 0 || !slices.Contains(journalOf(t, w, s.ID), "artifact.failed") {
		t.Errorf("%d artifacts; the journal says %v", len(kept.put), journalOf(t, w, s.ID))
	}
}
