package audit_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/audit"
)

// losses are ways in which the files of a live journal can go.
var losses = map[string]func(dir string) error{
	"the segment is removed": func(dir string) error { return os.Remove(filepath.Join(dir, "journal-00000001.jsonl")) },
	"the segment is replaced": func(dir string) error {
		name := filepath.Join(dir, "journal-00000001.jsonl")
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(name+".new", data, 0o600); err != nil {
			return err
		}
		return os.Rename(name+".new", name)
	},
	"the segment is moved": func(dir string) error {
		name := filepath.Join(dir, "journal-00000001.jsonl")
		return os.Rename(name, name+".old")
	},
	"the folder is moved":    func(dir string) error { return os.Rename(dir, dir+".old") },
	"the folder is removed":  os.RemoveAll,
	"the anchor is removed":  func(dir string) error { return os.Remove(dir + ".anchor") },
	"the segment is emptied": func(dir string) error { return os.Truncate(filepath.Join(dir, "journal-00000001.jsonl"), 0) },
}

func TestLostFileBreaksTheJournal(t *testing.T) {
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			j := mustOpen(t, audit.Config{Dir: dir, SyncInterval: time.Hour})
			e := sample(1)
			if err := j.Append(t.Context(), &e, true); err != nil {
				t.Fatal(err)
			}
			if err := lose(dir); err != nil {
				t.Fatal(err)
			}
			e = sample(2)
			wantCode(t, j.Append(t.Context(), &e, true), cove.Unavailable, dir, "removed, replaced or shortened")
			wantCode(t, j.Append(t.Context(), &e, false), cove.Unavailable, "removed, replaced or shortened")
			wantCode(t, j.Err(), cove.Unavailable, "removed, replaced or shortened")
			wantCode(t, j.Close(), cove.Unavailable, "removed, replaced or shortened")
		})
	}
}

func TestLostFileIsFoundWithinTheInterval(t *testing.T) {
	for name, lose := range losses {
		if name == "the segment is emptied" {
			continue // a file that is in its place is measured for a line that must last
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := newDir(t)
				j := mustOpen(t, audit.Config{Dir: dir, SyncInterval: time.Second})
				if err := lose(dir); err != nil {
					t.Fatal(err)
				}
				e := sample(1)
				if err := j.Append(t.Context(), &e, false); err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Second)
				synctest.Wait()
				wantCode(t, j.Append(t.Context(), &e, false), cove.Unavailable, "removed, replaced or shortened")
				_ = j.Close()
			})
		})
	}
}

func TestErrKnowsBeforeTheNextLine(t *testing.T) {
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			j := mustOpen(t, audit.Config{Dir: dir, SyncInterval: time.Hour})
			mustAppend(t, j, sample(1))
			if err := j.Err(); err != nil {
				t.Fatalf("a journal that is well says %v", err)
			}
			if err := lose(dir); err != nil {
				t.Fatal(err)
			}
			wantCode(t, j.Err(), cove.Unavailable, "removed, replaced or shortened")
			e := sample(2)
			wantCode(t, j.Append(t.Context(), &e, false), cove.Unavailable, "removed, replaced or shortened")
			_ = j.Close()
			wantCode(t, j.Err(), cove.Unavailable)
		})
	}
}

// killed returns a copy of a journal as it is a moment after eight lines that
// nobody waited for: none of them is synced.
func killed(t *testing.T, boot string) string {
	dir := newDir(t)
	synctest.Test(t, func(t *testing.T) {
		live := newDir(t)
		j := mustOpen(t, audit.Config{Dir: live, SyncInterval: time.Hour}.OnBoot(boot))
		for i := range 8 {
			mustAppend(t, j, sample(i))
		}
		<-time.After(20 * time.Millisecond)
		synctest.Wait()
		if err := os.CopyFS(dir, os.DirFS(live)); err != nil {
			t.Fatal(err)
		}
		for _, ext := range []string{".key", ".anchor"} {
			data, err := os.ReadFile(live + ext)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir+ext, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		mustClose(t, j)
	})
	return dir
}

// TestTailCutAfterAKillIsFound: the anchor follows the lines at once, so that
// the death of the process hides nothing.
func TestTailCutAfterAKillIsFound(t *testing.T) {
	dir := killed(t, "1a")
	cfg := audit.Config{Dir: dir}.OnBoot("1a")
	r, err := cfg.Verify(t.Context())
	if err != nil || !r.OK() || r.Anchor.Seq != 8 || r.Unanchored != 0 {
		t.Fatalf("before the cut got %+v, %v", r, err)
	}
	cutLastLine(t, dir)
	if r, err = cfg.Verify(t.Context()); err != nil || len(r.Problems) != 1 || r.Problems[0].Kind != audit.Truncated {
		t.Errorf("after the cut got %+v, %v", r, err)
	}
	_, err = audit.Open(cfg)
	wantCode(t, err, cove.Unavailable, "ends with line 7", "knows line 8")
}

// TestPowerCutMayLoseUnsyncedLines: after a start of the machine, only synced
// lines must be there, although the anchor of later ones came to the disk.
func TestPowerCutMayLoseUnsyncedLines(t *testing.T) {
	dir := killed(t, "1a")
	cutLastLine(t, dir)
	cfg := audit.Config{Dir: dir}.OnBoot("2b")
	if r, err := cfg.Verify(t.Context()); err != nil || !r.OK() || r.Lines != 7 || r.Anchor.Seq != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	mustClose(t, mustOpen(t, cfg))
}

func cutLastLine(t *testing.T, dir string) {
	t.Helper()
	name := filepath.Join(dir, "journal-00000001.jsonl")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	end := len(data) - 1
	for end > 0 && data[end-1] != '\n' {
		end--
	}
	if err := os.Truncate(name, int64(end)); err != nil {
		t.Fatal(err)
	}
}
