package bucket_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/archive/archivetest"
	"github.com/cove-sandbox/cove/internal/bucket"
)

// damages are other contents than this one: bytes changed, cut off, added.
func damages(good []byte, each int) [][]byte {
	var bad [][]byte
	for i := 0; i < len(good); i += each {
		flipped := append([]byte(nil), good...)
		flipped[i] ^= 0x10
		bad = append(bad, flipped, good[:i])
	}
	return append(bad, append(append([]byte(nil), good...), 0), append(append([]byte(nil), good...), good...))
}

// TestDamage damages blob and reference in many ways: none is read as if it were
// right, and of a blob the last piece is never given.
func TestDamage(t *testing.T) {
	const text = "the files of a session"
	onEach(t, func(t *testing.T, r rig) {
		a := open(t, r.url)
		id := cove.NewID()
		put(t, a, id, text)
		for _, folder := range []string{"blobs", "sessions"} {
			file := r.files(t, folder, 1)[0]
			good, err := os.ReadFile(file)
			check(t, err)
			for i, content := range damages(good, 7) {
				check(t, os.WriteFile(file, content, 0o600))
				if read, err := try(t, a, id); !isDamaged(err) || strings.HasSuffix(read, "session") {
					t.Errorf("damage %d of %s is read as %q, %v", i, folder, read, err)
				}
			}
			check(t, os.WriteFile(file, good, 0o600))
		}
		if got := archivetest.Content(t, a, id); got != text {
			t.Errorf("the good one holds %q", got)
		}
		check(t, os.Remove(r.files(t, "blobs", 1)[0]))
		if _, err := try(t, a, id); !isDamaged(err) {
			t.Errorf("without its blob: %v", err)
		}
	})
}

func try(t *testing.T, a *bucket.Archives, id cove.ID) (string, error) {
	t.Helper()
	r, err := a.Get(t.Context(), id)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(r)
	check(t, r.Close())
	return string(data), err
}

func isDamaged(err error) bool {
	return errors.Is(err, cove.Unavailable) && strings.Contains(cove.MessageOf(err), "damaged") && cove.RemedyOf(err) != ""
}

// TestNothingIsSweptBesideADamagedReference: its blob would look like nobody's.
func TestNothingIsSweptBesideADamagedReference(t *testing.T) {
	onEach(t, func(t *testing.T, r rig) {
		a := open(t, r.url)
		id := cove.NewID()
		put(t, a, id, "files")
		file := r.files(t, "sessions", 1)[0]
		good, err := os.ReadFile(file)
		check(t, err)
		check(t, os.WriteFile(file, good[:20], 0o600))
		a.Later(3 * time.Hour)
		if n, err := a.Sweep(t.Context()); n != 0 || !isDamaged(err) {
			t.Errorf("swept %d, %v", n, err)
		}
		check(t, os.WriteFile(file, good, 0o600))
		if got := archivetest.Content(t, a, id); got != "files" {
			t.Errorf("got %q", got)
		}
		check(t, a.Delete(t.Context(), id))
		sweep(t, a, 1)
	})
}

// TestHealed: a blob that was cut off is stored again, and not taken as it is.
func TestHealed(t *testing.T) {
	onEach(t, func(t *testing.T, r rig) {
		a := open(t, r.url)
		put(t, a, cove.NewID(), "files")
		check(t, os.Truncate(r.files(t, "blobs", 1)[0], 2))
		id := cove.NewID()
		put(t, a, id, "files")
		if got := archivetest.Content(t, a, id); got != "files" {
			t.Errorf("got %q", got)
		}
	})
}

// TestStrangers puts things into the store that do not belong there.
func TestStrangers(t *testing.T) {
	onEach(t, func(t *testing.T, r rig) {
		a := open(t, r.url)
		id := cove.NewID()
		put(t, a, id, "x")
		blob := filepath.Base(r.files(t, "blobs", 1)[0])
		digest, slot, _ := strings.Cut(blob, ".")
		names := []string{
			"notes.txt", ".hidden", "a b+c%20&<d>", string(id) + ".tar", strings.ToUpper(string(id)), digest, digest + ".x", digest + ".-1", digest + ".0" + slot, digest + ".+1",
			strings.ToUpper(digest) + ".1", digest[1:] + ".1", "\u202ex", "new\nline",
		}
		for _, folder := range []string{"sessions", "blobs"} {
			for _, name := range names {
				check(t, os.WriteFile(filepath.Join(r.dir, folder, name), []byte("x"), 0o600))
			}
			check(t, os.Mkdir(filepath.Join(r.dir, folder, string(cove.NewID())), 0o700))
		}
		if got := archivetest.List(t, a); len(got) != 1 || got[0] != id {
			t.Errorf("list is %q", got)
		}
		a.Later(2 * time.Hour)
		sweep(t, a, 0)
		check(t, a.Delete(t.Context(), id))
		sweep(t, a, 1)
	})
}

// TestWays puts links, pipes and folders where files should be.
func TestWays(t *testing.T) {
	r := newFolder(t)
	a := open(t, r.url)
	secret := filepath.Join(filepath.Dir(r.dir), "secret")
	check(t, os.WriteFile(secret, []byte("secret"), 0o600))
	out, inside, folder := cove.NewID(), cove.NewID(), cove.NewID()
	check(t, os.Symlink(secret, filepath.Join(r.dir, "sessions", string(out))))
	check(t, os.Symlink("../../secret", filepath.Join(r.dir, "sessions", string(inside))))
	check(t, os.MkdirAll(filepath.Join(r.dir, "sessions", string(folder), "sub"), 0o700))
	if got := archivetest.List(t, a); len(got) != 0 {
		t.Errorf("list is %q", got)
	}
	for _, id := range []cove.ID{out, inside, folder} {
		if _, err := a.Get(t.Context(), id); !errors.Is(err, cove.Unavailable) {
			t.Errorf("%v", err)
		}
	}
	put(t, a, out, "mine") // replaces the link, not what it points to
	if got := archivetest.Content(t, a, out); got != "mine" {
		t.Errorf("got %q", got)
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "secret" {
		t.Errorf("the secret is %q, %v", text, err)
	}
	if _, err := a.Put(t.Context(), folder, strings.NewReader("x")); !errors.Is(err, cove.Unavailable) {
		t.Errorf("over a folder: %v", err)
	}
	if err := a.Delete(t.Context(), folder); !errors.Is(err, cove.Unavailable) {
		t.Errorf("delete a folder: %v", err)
	}
	if got := entries(t, filepath.Join(r.dir, "drafts")); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}

// TestReferenceOfAnotherSession puts the reference of one session under the name of
// another, and reads one of an older build, which names no session.
func TestReferenceOfAnotherSession(t *testing.T) {
	onEach(t, func(t *testing.T, r rig) {
		a := open(t, r.url)
		mine, other := cove.NewID(), cove.NewID()
		put(t, a, other, "the files of another one")
		file := r.files(t, "sessions", 1)[0]
		reference, err := os.ReadFile(file)
		check(t, err)
		under := filepath.Join(filepath.Dir(file), strings.Replace(filepath.Base(file), string(other), string(mine), 1))
		check(t, os.WriteFile(under, reference, 0o600))
		if read, err := try(t, a, mine); !isDamaged(err) || !strings.Contains(cove.MessageOf(err), string(other)) {
			t.Errorf("it is read as %q, %v", read, err)
		}
		old := strings.Replace(strings.Replace(string(reference), "cove2 ", "cove1 ", 1), " "+string(other), "", 1)
		check(t, os.WriteFile(under, []byte(old), 0o600))
		if read, err := try(t, a, mine); err != nil || read != "the files of another one" {
			t.Errorf("one of an older build is read as %q, %v", read, err)
		}
	})
}
