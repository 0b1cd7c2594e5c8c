package audit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/audit"
)

// disk is a file that fails when it is told to, and counts its syncs.
type disk struct {
	audit.File

	ctl *controls
}

type controls struct {
	mu       sync.Mutex
	syncs    int
	writeErr error
	short    int // bytes that a failing write still writes
	syncErr  error
	truncErr error
	gate     chan struct{} // if set, a sync waits for it
	syncing  chan struct{} // gets a token when one does
}

func (c *controls) set(change func(*controls)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

func (c *controls) wrap(f audit.File) audit.File { return &disk{File: f, ctl: c} }

func (d *disk) Write(p []byte) (int, error) {
	d.ctl.mu.Lock()
	defer d.ctl.mu.Unlock()
	if d.ctl.writeErr == nil {
		return d.File.Write(p)
	}
	n, err := d.File.Write(p[:min(d.ctl.short, len(p))])
	return n, errors.Join(d.ctl.writeErr, err)
}

func (d *disk) Sync() error {
	d.ctl.mu.Lock()
	d.ctl.syncs++
	gate, syncing := d.ctl.gate, d.ctl.syncing
	d.ctl.mu.Unlock()
	if gate != nil {
		syncing <- struct{}{}
		<-gate
	}
	d.ctl.mu.Lock()
	defer d.ctl.mu.Unlock()
	return d.ctl.syncErr
}

func (d *disk) Truncate(size int64) error {
	d.ctl.mu.Lock()
	defer d.ctl.mu.Unlock()
	if d.ctl.truncErr != nil {
		return d.ctl.truncErr
	}
	return d.File.Truncate(size)
}

func openOn(t *testing.T, cfg audit.Config, c *controls) *audit.Journal {
	t.Helper()
	j, err := audit.OpenWith(cfg, c.wrap)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// TestJournalRecoversFromAFullDisk: a line for which there was no room is cut away, and
// the next one is taken when there is room again, without a restart.
func TestJournalRecoversFromAFullDisk(t *testing.T) {
	for name, short := range map[string]int{"nothing written": 0, "a part written": 100} {
		for _, rollback := range []error{nil, syscall.EIO} {
			t.Run(fmt.Sprint(name, rollback), func(t *testing.T) {
				dir := newDir(t)
				ctl := &controls{}
				j := openOn(t, audit.Config{Dir: dir}, ctl)
				mustAppend(t, j, sample(1))
				ctl.set(func(c *controls) { c.writeErr, c.short, c.truncErr = syscall.ENOSPC, short, rollback })
				e := sample(2)
				want := cove.Exhausted
				if rollback != nil {
					want = cove.Unavailable
				}
				err := j.Append(t.Context(), &e, false)
				wantCode(t, err, want, dir, "free space")
				if want == cove.Exhausted {
					wantCode(t, err, want, "no space left", " free, ", "needed")
				}
				if e.Seq != 0 {
					t.Errorf("the line that was not written got number %d", e.Seq)
				}
				wantCode(t, j.Append(t.Context(), &e, true), want, dir)
				ctl.set(func(c *controls) { c.writeErr, c.truncErr = nil, nil })
				if err := j.Err(); err != nil {
					t.Errorf("with room again: %v", err)
				}
				if next := mustAppend(t, j, sample(3)); next.Seq != 2 {
					t.Errorf("the next line got number %d", next.Seq)
				}
				mustClose(t, j)
				if r := mustVerify(t, dir); !r.OK() || r.Lines != 2 {
					t.Errorf("after the repair got %d lines and %v", r.Lines, r.Problems)
				}
			})
		}
	}
}

func TestFailedWriteBreaksTheJournal(t *testing.T) {
	ctl := &controls{}
	j := openOn(t, audit.Config{Dir: newDir(t)}, ctl)
	ctl.set(func(c *controls) { c.writeErr = syscall.EIO })
	e := sample(1)
	wantCode(t, j.Append(t.Context(), &e, false), cove.Unavailable, "input/output error", "restart")
	ctl.set(func(c *controls) { c.writeErr = nil })
	wantCode(t, j.Append(t.Context(), &e, false), cove.Unavailable, "input/output error")
	wantCode(t, j.Room(), cove.Unavailable, "input/output error")
}

func TestFailedSyncBreaksTheJournal(t *testing.T) {
	ctl := &controls{}
	j := openOn(t, audit.Config{Dir: newDir(t)}, ctl)
	ctl.set(func(c *controls) { c.syncErr = syscall.EIO })
	e := sample(1)
	wantCode(t, j.Append(t.Context(), &e, true), cove.Unavailable, "input/output error")
	ctl.set(func(c *controls) { c.syncErr = nil })
	e = sample(2)
	wantCode(t, j.Append(t.Context(), &e, false), cove.Unavailable, "input/output error")
	wantCode(t, j.Close(), cove.Unavailable, "input/output error")
}

func TestFailedAnchorBreaksTheJournal(t *testing.T) {
	j := mustOpen(t, audit.Config{Dir: newDir(t)})
	if err := j.CloseAnchor(); err != nil {
		t.Fatal(err)
	}
	e := sample(1)
	wantCode(t, j.Append(t.Context(), &e, true), cove.Unavailable, "cannot be written")
	wantCode(t, j.Append(t.Context(), &e, false), cove.Unavailable, "cannot be written")
}

func TestFailedRotationBreaksTheJournal(t *testing.T) {
	dir := newDir(t)
	j := mustOpen(t, audit.Config{Dir: dir, SegmentBytes: 1})
	mustAppend(t, j, sample(1))
	if err := os.Mkdir(filepath.Join(dir, "journal-00000002.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	e := sample(2)
	wantCode(t, j.Append(t.Context(), &e, false), cove.Unavailable, "cannot be written")
	if e.Seq != 0 {
		t.Errorf("the line that was not written got number %d", e.Seq)
	}
}

func TestFailedSyncOfAClosedSegmentBreaksTheJournal(t *testing.T) {
	ctl := &controls{}
	j := openOn(t, audit.Config{Dir: newDir(t), SegmentBytes: 1, SyncInterval: time.Hour}, ctl)
	mustAppend(t, j, sample(1))
	mustAppend(t, j, sample(2))
	ctl.set(func(c *controls) { c.syncErr = syscall.EIO })
	wantCode(t, j.Close(), cove.Unavailable, "input/output error")
}

// TestWrittenLinesAreSyncedAfterAWriteFailed: an error of one write takes
// nothing back from those who were served before it.
func TestWrittenLinesAreSyncedAfterAWriteFailed(t *testing.T) {
	ctl := &controls{gate: make(chan struct{}), syncing: make(chan struct{}, 10)}
	j := openOn(t, audit.Config{Dir: newDir(t), SegmentBytes: 1}, ctl)
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { e := sample(1); first <- j.Append(context.Background(), &e, true) }()
	<-ctl.syncing
	go func() { e := sample(2); second <- j.Append(context.Background(), &e, true) }()
	for e := range j.Events(t.Context(), cove.EventFilter{Follow: true}) {
		if e.Seq == 2 {
			break
		}
	}
	ctl.set(func(c *controls) { c.writeErr = syscall.ENOSPC })
	e := sample(3)
	err := j.Append(t.Context(), &e, false)
	close(ctl.gate)
	wantCode(t, err, cove.Exhausted, "no space left")
	if err := errors.Join(<-first, <-second); err != nil {
		t.Errorf("lines that are on the disk got %v", err)
	}
}

func TestWaitersShareOneSync(t *testing.T) {
	const waiters = 40
	ctl := &controls{gate: make(chan struct{}), syncing: make(chan struct{}, waiters)}
	j := openOn(t, audit.Config{Dir: newDir(t), SyncInterval: time.Hour}, ctl)
	var wg sync.WaitGroup
	durable := func() {
		e := sample(1)
		if err := j.Append(t.Context(), &e, true); err != nil {
			t.Error(err)
		}
	}
	wg.Go(durable)
	<-ctl.syncing // the first is under way; all others come while it is
	for range waiters {
		wg.Go(durable)
	}
	for e := range j.Events(t.Context(), cove.EventFilter{Follow: true}) {
		if e.Seq == waiters+1 {
			break
		}
	}
	close(ctl.gate)
	wg.Wait()
	ctl.set(func(c *controls) {
		if c.syncs > 2 {
			t.Errorf("%d waiters needed %d syncs", waiters+1, c.syncs)
		}
	})
}

func TestWaitForTheDiskEndsWithTheContext(t *testing.T) {
	ctl := &controls{gate: make(chan struct{}), syncing: make(chan struct{}, 1)}
	j := openOn(t, audit.Config{Dir: newDir(t)}, ctl)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { e := sample(1); done <- j.Append(ctx, &e, true) }()
	<-ctl.syncing
	cancel()
	wantCode(t, <-done, cove.Canceled)
	close(ctl.gate)
}

func TestLinesAreSyncedWithinTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctl := &controls{}
		dir := newDir(t)
		j := openOn(t, audit.Config{Dir: dir, SyncInterval: time.Second, AnchorInterval: time.Minute}, ctl)
		syncs := func() (n int) {
			synctest.Wait()
			ctl.set(func(c *controls) { n = c.syncs })
			return n
		}
		before := syncs()
		mustAppend(t, j, sample(1))
		mustAppend(t, j, sample(2))
		if n := syncs(); n != before {
			t.Errorf("%d syncs before the interval was over", n-before)
		}
		<-time.After(time.Second)
		if n := syncs(); n != before+1 {
			t.Errorf("%d syncs after the interval", n-before)
		}
		if r := mustVerify(t, dir); r.Anchor.Seq != 2 {
			t.Errorf("after the sync the anchor stands at line %d", r.Anchor.Seq)
		}
		<-time.After(time.Hour)
		if n := syncs(); n != before+1 {
			t.Errorf("%d syncs with nothing to do", n-before)
		}
		// The anchor was synced meanwhile, and the next line tells of it.
		mustAppend(t, j, sample(3))
		old, err := os.ReadFile(dir + ".anchor")
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		mustAppend(t, j, sample(4))
		mustClose(t, j)
		if err := os.WriteFile(dir+".anchor", old, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := mustVerify(t, dir); len(r.Problems) != 1 || r.Problems[0].Kind != audit.Truncated {
			t.Errorf("an anchor that was put back: %v", r.Problems)
		}
	})
}

// tinyDisk is the directory of a journal on a file system of its own, and a function that
// fills the rest of that and one that frees it again.
func tinyDisk(t *testing.T, size string) (dir string, fill, free func()) {
	t.Helper()
	home := t.TempDir()
	if err := syscall.Mount("tmpfs", home, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("mounting a tmpfs needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(home, 0); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(home, "filler")
	fill = func() {
		f, err := os.Create(filler)
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
		if cerr := f.Close(); cerr != nil || !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err, cerr)
		}
	}
	free = func() {
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(home, "journal"), fill, free
}

// TestReserveOnAFullDisk: on a full disk the journal says that it has no room, takes lines
// as long as what it set aside lasts, and has room again when the disk has.
func TestReserveOnAFullDisk(t *testing.T) {
	for name, segment := range map[string]cove.Bytes{"one segment": 0, "each line in a segment": 1} {
		t.Run(name, func(t *testing.T) {
			dir, fill, free := tinyDisk(t, "2m")
			j := mustOpen(t, audit.Config{Dir: dir, Reserve: 64 * cove.KiB, SegmentBytes: segment})
			mustAppend(t, j, sample(0))
			if err := j.Room(); err != nil {
				t.Fatal(err)
			}
			fill()
			lines := int64(1)
			for ; ; lines++ {
				if lines > 1 {
					wantCode(t, j.Room(), cove.Exhausted, "no space left", dir, " free, ", " needed", "goes on by itself")
				}
				e := sample(int(lines))
				// What is set aside beyond the reserve is used up first.
				if err := j.Append(t.Context(), &e, true); err != nil {
					wantCode(t, err, cove.Exhausted, "no space left")
					break
				}
				if lines == 1 { // use up the rest beyond the reserve
					for ; j.Room() == nil; lines++ {
						mustAppend(t, j, sample(int(lines)))
					}
				}
			}
			if lines < 64<<10/512 {
				t.Errorf("only %d lines fit into the reserve", lines)
			}
			free()
			if err := j.Room(); err != nil {
				t.Errorf("with room again: %v", err)
			}
			mustAppend(t, j, sample(int(lines)))
			mustClose(t, j)
			if r := mustVerify(t, dir); !r.OK() || r.Lines != lines+1 {
				t.Errorf("%d lines were taken; the report is %+v", lines+1, r)
			}
		})
	}
}

// TestTinyDisk fills a real file system with lines.
func TestTinyDisk(t *testing.T) {
	dir, _, _ := tinyDisk(t, "64k")
	j := mustOpen(t, audit.Config{Dir: dir, SegmentBytes: 8 * cove.KiB})
	var last int64
	for i := range 1000 {
		e := sample(i)
		if err := j.Append(t.Context(), &e, i%10 == 0); err != nil {
			wantCode(t, err, cove.Exhausted, "no space left", "free space")
			break
		}
		last = e.Seq
	}
	if last == 0 || last == 1000 {
		t.Fatalf("the disk was full after %d lines", last)
	}
	mustClose(t, j)
	if r := mustVerify(t, dir); !r.OK() || r.Lines != last {
		t.Errorf("%d lines were taken; the report is %+v", last, r)
	}
	_, err := audit.Open(audit.Config{Dir: filepath.Join(filepath.Dir(dir), "other")})
	wantCode(t, err, cove.Unavailable, "cannot be opened", "free space")
}
