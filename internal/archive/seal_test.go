package archive_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

// TestDamage changes every byte of an archive in turn, cuts it everywhere and
// makes it longer: none of these is read as if it were right.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	id := cove.NewID()
	put(t, d, id, "the files of a session")
	file := filepath.Join(dir, string(id)+".tar")
	good, err := os.ReadFile(file)
	check(t, err)
	var bad [][]byte
	for i := range good {
		flipped := append([]byte(nil), good...)
		flipped[i] ^= 0x10
		bad = append(bad, flipped, good[:i])
	}
	bad = append(bad, append(append([]byte(nil), good...), 0), append(append([]byte(nil), good...), good...))
	for i, content := range bad {
		check(t, os.WriteFile(file, content, 0o600))
		r, err := d.Get(t.Context(), id)
		if err == nil {
			_, err = io.ReadAll(r)
			check(t, r.Close())
		}
		if !errors.Is(err, cove.Unavailable) || !strings.Contains(cove.MessageOf(err), "damaged") || cove.RemedyOf(err) == "" {
			t.Errorf("damage %d is read as %v", i, err)
		}
	}
	check(t, os.WriteFile(file, good, 0o600))
	if got := content(t, d, id); got != "the files of a session" {
		t.Errorf("the good one holds %q", got)
	}
}

// TestCutWhileItIsRead shortens the file under the reader.
func TestCutWhileItIsRead(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	id := cove.NewID()
	put(t, d, id, strings.Repeat("x", 100_000))
	r, err := d.Get(t.Context(), id)
	check(t, err)
	_, err = io.ReadFull(r, make([]byte, 10))
	check(t, err)
	check(t, os.Truncate(filepath.Join(dir, string(id)+".tar"), 50_000))
	if _, err := io.ReadAll(r); !errors.Is(err, cove.Unavailable) {
		t.Errorf("got %v", err)
	}
	check(t, r.Close())
}

// TestArchiveOfAnotherSession puts the file of one session under the name of another.
func TestArchiveOfAnotherSession(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	mine, other := cove.NewID(), cove.NewID()
	put(t, d, mine, "my files")
	put(t, d, other, "the files of another one")
	check(t, os.Rename(filepath.Join(dir, string(other)+".tar"), filepath.Join(dir, string(mine)+".tar")))
	_, err := d.Get(t.Context(), mine)
	if !errors.Is(err, cove.Unavailable) || !strings.Contains(cove.MessageOf(err), "holds the files of session "+string(other)) || cove.RemedyOf(err) == "" {
		t.Errorf("got %v (%s)", err, cove.RemedyOf(err))
	}
}

// TestArchiveOfAnOlderBuild reads a file whose seal has no id.
func TestArchiveOfAnOlderBuild(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	id := cove.NewID()
	old := "old files" + "covearc1" + "\x09\x00\x00\x00\x00\x00\x00\x00" + "\xff\x93\x33\x38"
	check(t, os.WriteFile(filepath.Join(dir, string(id)+".tar"), []byte(old), 0o600))
	if got := content(t, d, id); got != "old files" {
		t.Errorf("it holds %q", got)
	}
}
