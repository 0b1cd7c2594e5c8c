//go:build !lean

package daemon

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/audit"
)

// MainJournal is the name of the server's journal.
const MainJournal = "main"

// Journal is one of the journals of a COVE_HOME, to be read without a server.
type Journal struct {
	Name string // main, or oneshot-N for that of a lane
	dir  string
	sign string // what is made after the journal: where it is, one was there
}

// Journals returns the journals that a COVE_HOME has. It makes nothing: a
// COVE_HOME that does not exist has none.
func Journals(home string) ([]Journal, error) {
	h := Home{dir: home}
	numbers, err := h.laneNumbers()
	if err != nil {
		return nil, homeError(home, err)
	}
	all := []Journal{{Name: MainJournal, dir: h.Journal(), sign: h.database()}}
	for _, n := range numbers {
		l := h.lane(n)
		all = append(all, Journal{Name: l.name(), dir: filepath.Join(l.dir, "journal"), sign: filepath.Join(l.dir, "output")})
	}
	var found []Journal
	for _, j := range all {
		_, err := os.Stat(j.dir)
		if errors.Is(err, fs.ErrNotExist) && !j.traces() {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, homeError(home, err)
		}
		found = append(found, j)
	}
	return found, nil
}

// traces reports whether a journal was there once: its key or anchor is, or
// what is made after it. Such a journal has been removed, which Verify must say.
func (j Journal) traces() bool { return len(j.left()) > 0 }

// left returns what is there beside the journal itself.
func (j Journal) left() (names []string) {
	for _, path := range []string{j.dir + ".key", j.dir + ".anchor", j.sign} {
		if _, err := os.Lstat(path); err == nil {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}

// Read yields the lines that f selects, up to the last that is there now.
func (j Journal) Read(ctx context.Context, f cove.EventFilter) iter.Seq2[cove.Event, error] {
	return audit.Read(ctx, j.dir, f)
}

// Verdict is what was found out about a journal.
type Verdict struct {
	Journal  string   `json:"journal"`
	Lines    int64    `json:"lines"`
	Problems []string `json:"problems"`
}

// Verify checks every line of the journal. What is wrong with it is in the
// verdict; the error says only that the check could not be done.
func (j Journal) Verify(ctx context.Context) (Verdict, error) {
	v := Verdict{Journal: j.Name, Problems: []string{}}
	r, err := audit.Verify(ctx, j.dir)
	if errors.Is(err, cove.NotFound) {
		v.Problems = append(v.Problems, "missing: the journal was removed; still there: "+strings.Join(j.left(), ", "))
		return v, nil
	}
	if err != nil {
		return v, err
	}
	v.Lines = r.Lines
	for _, p := range r.Problems {
		v.Problems = append(v.Problems, p.String())
	}
	return v, nil
}
