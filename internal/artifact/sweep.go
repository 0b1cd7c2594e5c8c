package artifact

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// maxDraftAge is how old a file is that its writer has forgotten.
const maxDraftAge = time.Hour

// found is a file of the directory.
type found struct {
	name string
	at   time.Time
	size cove.Bytes
}

// Sweep implements [cove.Artifacts]: the oldest go first. What somebody else put
// into the directory stays.
func (s *Store) Sweep(ctx context.Context) (int64, error) {
	s.mu.Lock()
	s.files, s.bytes = 0, 0
	s.mu.Unlock()
	if _, err := os.Lstat(s.dir); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	root, err := s.open()
	if err != nil {
		return 0, s.fault(err)
	}
	defer func() { _ = root.Close() }() // nothing was written through it
	files, err := list(root)
	if err != nil {
		return 0, s.fault(err)
	}
	defer s.recount(root)
	var removed int64
	for _, name := range s.surplus(files, time.Now()) {
		if ctx.Err() != nil {
			return removed, ctx.Err()
		}
		if err := absent(root.Remove(name)); err != nil {
			return removed, s.fault(err)
		}
		removed++
	}
	return removed, nil
}

// list returns the files that a Store wrote, the newest first.
func list(root *os.Root) ([]found, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	entries, err := dir.ReadDir(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	var files []found
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !ours(e.Name()) {
			continue // somebody else's, or gone meanwhile
		}
		files = append(files, found{e.Name(), info.ModTime(), cove.Bytes(info.Size())})
	}
	slices.SortFunc(files, func(a, b found) int { return cmp.Or(b.at.Compare(a.at), strings.Compare(b.name, a.name)) })
	return files, nil
}

// ours reports whether a name is one that a Store gives.
func ours(name string) bool {
	if id, ok := strings.CutPrefix(name, draftPrefix); ok {
		return cove.ID(id).Valid()
	}
	stamp, rest, ok := strings.Cut(name, "_")
	_, err := time.Parse(stampForm, stamp)
	return ok && err == nil && strings.HasSuffix(rest, suffix)
}

// surplus names the files that are too old or too many, of those that are given
// in the order of their age.
func (s *Store) surplus(files []found, now time.Time) []string {
	var names []string
	var kept int
	var bytes cove.Bytes
	for _, f := range files {
		draft := strings.HasPrefix(f.name, draftPrefix)
		age := now.Sub(f.at)
		switch {
		case draft && age < maxDraftAge:
			continue
		case draft, age > s.cfg.MaxAge, kept >= s.cfg.MaxFiles, bytes+f.size > s.cfg.MaxBytes:
			names = append(names, f.name)
			continue
		}
		kept++
		bytes += f.size
	}
	return names
}
