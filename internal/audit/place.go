package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// errGone is the error about a file that is not where it was, or not as long as
// it was. Lines written to it would be found by nobody.
var errGone = errors.New("was removed, replaced or shortened while it was written")

// Err returns why the journal takes no lines, or nil. It looks at the files
// too, so that it knows before the next line does.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.refusal(); err != nil {
		return err
	}
	if err := j.mend(); err != nil {
		return err
	}
	if err := errors.Join(linked(j.file, j.head.end), j.inPlace([]file{j.file}, j.head.segment)); err != nil {
		return j.fail(err)
	}
	return nil
}

// linked demands that an open segment still has a name and all its bytes.
func linked(f file, size int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && st.Nlink == 0 || info.Size() != size {
		return fmt.Errorf("%s %w", info.Name(), errGone)
	}
	return nil
}

// inPlace demands that the names of the open files, of which the last is the
// segment of that number, and of the anchor still lead to them.
func (j *Journal) inPlace(files []file, segment int) error {
	for i, f := range files {
		if err := leadsTo(filepath.Join(j.cfg.Dir, segmentName(segment-len(files)+1+i)), f); err != nil {
			return err
		}
	}
	return leadsTo(j.cfg.AnchorFile, j.committer.anchor)
}

func leadsTo(path string, f interface{ Stat() (os.FileInfo, error) }) error {
	open, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(path)
	if err != nil || !os.SameFile(open, there) {
		return fmt.Errorf("%s %w", filepath.Base(path), errGone)
	}
	return nil
}
