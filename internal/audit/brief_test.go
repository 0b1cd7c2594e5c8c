package audit_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/audit"
)

func (c *controls) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.syncs
}

// TestBeginGoesOnBeforeTheDisk: the line is written when Begin returns, and
// wait tells when it is on the disk.
func TestBeginGoesOnBeforeTheDisk(t *testing.T) {
	dir := newDir(t)
	ctl := &controls{gate: make(chan struct{}), syncing: make(chan struct{})}
	j := openOn(t, audit.Config{Dir: dir}, ctl)
	e := sample(1)
	wait, err := j.Begin(&e)
	if err != nil || e.Seq != 1 {
		t.Fatalf("line %d, %v", e.Seq, err)
	}
	<-ctl.syncing
	if got := collect(t, audit.Read(t.Context(), dir, cove.EventFilter{})); len(got) != 1 {
		t.Errorf("%d lines are written while the disk is slow", len(got))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantCode(t, wait(ctx), cove.Canceled, "ended early")
	ctl.set(func(c *controls) { close(c.gate); c.gate = nil })
	if err := wait(t.Context()); err != nil {
		t.Error(err)
	}
	mustClose(t, j)
}

func TestBeginRefuses(t *testing.T) {
	ctl := &controls{}
	j := openOn(t, audit.Config{Dir: newDir(t)}, ctl)
	e := sample(1)
	e.Data = []byte("{")
	if _, err := j.Begin(&e); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("data that is not JSON: %v", err)
	}
	e = sample(1)
	ctl.set(func(c *controls) { c.syncErr = syscall.EIO })
	wait, err := j.Begin(&e)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, wait(t.Context()), cove.Unavailable, "input/output error")
	_, err = j.Begin(&e)
	wantCode(t, err, cove.Unavailable, "input/output error")
}

// TestBriefJournalSyncsOnlyWhatSomebodyWaitsFor: two processes, one after the
// other, each with two durable lines and two others.
func TestBriefJournalSyncsOnlyWhatSomebodyWaitsFor(t *testing.T) {
	cfg := audit.Config{Dir: newDir(t), Brief: true}
	for run := range 2 {
		ctl := &controls{}
		j := openOn(t, cfg, ctl)
		if n := ctl.count(); n != 0 {
			t.Errorf("run %d: Open synced %d times", run, n)
		}
		for i := range 2 {
			e := sample(i)
			if err := j.Append(t.Context(), &e, true); err != nil {
				t.Fatal(err)
			}
			mustAppend(t, j, sample(i))
		}
		mustClose(t, j)
		if n := ctl.count(); n != 2 {
			t.Errorf("run %d: %d syncs for two durable lines", run, n)
		}
		want := int64(4 * (run + 1))
		if r := mustVerify(t, cfg.Dir); !r.OK() || r.Lines != want || r.Anchor.Seq != want || r.Unanchored != 0 {
			t.Errorf("run %d: %+v", run, r)
		}
	}
	cutLastLine(t, cfg.Dir)
	if r := mustVerify(t, cfg.Dir); r.OK() {
		t.Error("the line that nobody waited for was cut off, and that was not found")
	}
	_, err := audit.Open(cfg)
	wantCode(t, err, cove.Unavailable, "it ends with line 7")
}

// TestBriefJournalWithoutDurableLines: nothing else would bring them to the disk.
func TestBriefJournalWithoutDurableLines(t *testing.T) {
	cfg := audit.Config{Dir: newDir(t), Brief: true}
	ctl := &controls{}
	j := openOn(t, cfg, ctl)
	mustAppend(t, j, sample(1))
	mustClose(t, j)
	if n := ctl.count(); n != 1 {
		t.Errorf("%d syncs", n)
	}
	mustClose(t, openOn(t, cfg, ctl)) // and one that is only looked into
	if r := mustVerify(t, cfg.Dir); !r.OK() || r.Lines != 1 || r.Unanchored != 0 {
		t.Errorf("got %+v", r)
	}
}

// TestBriefJournalAfterARestartOfTheMachine: lines that nobody waited for may
// be gone then, and only then.
func TestBriefJournalAfterARestartOfTheMachine(t *testing.T) {
	cfg := audit.Config{Dir: newDir(t), Brief: true}
	j := mustOpen(t, cfg.OnBoot("1a"))
	for i, durable := range []bool{true, false, true, false} {
		e := sample(i)
		if err := j.Append(t.Context(), &e, durable); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, j)
	cutLastLine(t, cfg.Dir)
	if _, err := audit.Open(cfg.OnBoot("1a")); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("while the machine runs: %v", err)
	}
	mustClose(t, mustOpen(t, cfg.OnBoot("2b")))
	cutLastLine(t, cfg.Dir)
	if _, err := audit.Open(cfg.OnBoot("2b")); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("without a durable line: %v", err)
	}
}

func TestBriefJournalThatIsGoneAtItsEnd(t *testing.T) {
	for _, name := range []string{"journal/journal-00000001.jsonl", "journal.anchor"} {
		cfg := audit.Config{Dir: newDir(t), Brief: true}
		j := mustOpen(t, cfg)
		e := sample(1)
		if err := j.Append(t.Context(), &e, true); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(filepath.Dir(cfg.Dir), name)); err != nil {
			t.Fatal(err)
		}
		wantCode(t, j.Close(), cove.Unavailable, "removed, replaced or shortened")
	}
}

// TestBriefJournalTellsOfItsAnchor: an anchor that is put back is found in a
// journal of short processes too.
func TestBriefJournalTellsOfItsAnchor(t *testing.T) {
	cfg := audit.Config{Dir: newDir(t), Brief: true}
	run := func() {
		j := mustOpen(t, cfg)
		for i := range 2 {
			e := sample(i)
			if err := j.Append(t.Context(), &e, true); err != nil {
				t.Fatal(err)
			}
		}
		mustAppend(t, j, sample(3)) // the second sync came after that of the anchor
		mustClose(t, j)
	}
	run()
	old, err := os.ReadFile(cfg.Dir + ".anchor")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		run()
	}
	if err := os.WriteFile(cfg.Dir+".anchor", old, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := mustVerify(t, cfg.Dir); r.OK() {
		t.Error("the anchor was put back, and that was not found")
	}
}
