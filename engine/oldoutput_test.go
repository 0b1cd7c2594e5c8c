package engine_test

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// long writes 108,894 bytes.
var long = cove.ExecRequest{Line: "seq 1 20000"}

// wantOutput wants the output of long to be kept, or not.
func wantOutput(t *testing.T, p cove.Platform, s cove.ID, id cove.OutputID, kept bool) {
	t.Helper()
	page, err := p.Processes(s).Output(t.Context(), id, cove.OutputRange{})
	switch {
	case kept && (err != nil || page.Total != 108894):
		t.Errorf("%+v, %v", page, err)
	case !kept:
		wantCode(t, err, cove.NotFound, "")
	}
}

// TestOldOutputMakesRoom: output that a tenant kept never stops its work. The oldest
// goes first, of all its sessions, and that of earlier servers, too.
func TestOldOutputMakesRoom(t *testing.T) {
	w := newWorld(t)
	e := w.open(bounded)
	other := e.As(boss)
	beside := mustOpen(t, other, cove.Spec{})
	untouched, err := other.Processes(beside.ID).Exec(t.Context(), long)
	if err != nil {
		t.Fatal(err)
	}
	p := e.As(greedy)
	first, second := mustOpen(t, p, cove.Spec{}), mustOpen(t, p, cove.Spec{})
	write := func(s cove.ID) cove.OutputID {
		t.Helper()
		x, err := p.Processes(s).Exec(t.Context(), long)
		if err != nil || x.OutputID == "" {
			t.Fatalf("%+v, %v", x, err)
		}
		if use := tenantDisk(t, p, greedy.Tenant); use.Output > diskBound+200*cove.KiB { // what stands in memory at the end is still kept
			t.Errorf("it keeps %+v", use)
		}
		wantOutput(t, p, s, x.OutputID, true)
		return x.OutputID
	}
	oldest := write(first.ID)
	var newest cove.OutputID
	for range 12 {
		newest = write(second.ID)
	}
	wantOutput(t, p, first.ID, oldest, false)
	works(t, p)
	wantOutput(t, p, second.ID, newest, true)

	w.shut(e, w.provider)
	e = w.open(bounded)
	p = e.As(greedy)
	for range 10 {
		write(first.ID)
	}
	wantOutput(t, p, second.ID, newest, false)
	fillUp(t, p, first.ID)
	if use := tenantDisk(t, p, greedy.Tenant); use.Output != 0 || use.Snapshots < diskBound-2*64*cove.KiB {
		t.Errorf("it keeps %+v", use)
	}
	wantOutput(t, e.As(boss), beside.ID, untouched.OutputID, true)
}

// TestOldOutputOfBackgroundProgramsMakesRoom, with what the provider wrote of them.
func TestOldOutputOfBackgroundProgramsMakesRoom(t *testing.T) {
	p := openEngine(t, bounded, func(c *engine.Config) { c.OutputKept = 300 * cove.KiB }).As(greedy)
	s := mustOpen(t, p, cove.Spec{})
	var pids []cove.PID
	for range 12 {
		pr := background(t, p, s.ID, long)
		if _, err := p.Processes(s.ID).Wait(t.Context(), pr.PID); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pr.PID)
	}
	_, err := p.Processes(s.ID).Wait(t.Context(), pids[0])
	wantCode(t, err, cove.NotFound, "")
	if _, err := p.Processes(s.ID).Wait(t.Context(), pids[len(pids)-1]); err != nil {
		t.Error(err)
	}
	if use := tenantDisk(t, p, greedy.Tenant); use.Output > diskBound+200*cove.KiB { // what stands in memory at the end is still kept
		t.Errorf("it keeps %+v", use)
	}
}

// TestOldOutputStaysWhereItIsNotEnough: what would not fit without it removes none.
func TestOldOutputStaysWhereItIsNotEnough(t *testing.T) {
	p := openEngine(t, bounded).As(greedy)
	s := mustOpen(t, p, cove.Spec{})
	x, err := p.Processes(s.ID).Exec(t.Context(), long)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Files(s.ID).Write(t.Context(), "big", strings.NewReader(strings.Repeat("x", 2<<20)), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = p.Snapshots().Snapshot(t.Context(), s.ID, cove.SnapshotRequest{})
	wantCode(t, err, cove.Exhausted, cove.ReasonTenantDisk)
	wantOutput(t, p, s.ID, x.OutputID, true)
}
