package daemon_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// entries returns the names below dir, to see that nothing was left.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// mustSay demands one sentence about COVE_HOME with the given words.
func mustSay(t *testing.T, err error, code cove.Code, words string) {
	t.Helper()
	e, ok := errors.AsType[*cove.Error](err)
	if !ok || e.Code != code || e.Details["field"] != "COVE_HOME" {
		t.Fatalf("got %v, want %s about COVE_HOME", err, code)
	}
	if !strings.HasPrefix(e.Message, "COVE_HOME: ") || !strings.Contains(e.Message, words) || strings.Contains(e.Message, "\n") {
		t.Errorf("got %q, want words %q", e.Message, words)
	}
}

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// mount mounts a file system for the time of a test.
func mount(t *testing.T, flags uintptr, data string) string {
	t.Helper()
	asRoot(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, data); err != nil {
		t.Skipf("cannot mount here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestHomeIsMadeForItsOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "home")
	h, err := daemon.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if names := entries(t, dir); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
	if h.Dir() != dir || h.Socket() != filepath.Join(dir, "cove.sock") || h.Journal() != filepath.Join(dir, "journal") {
		t.Errorf("wrong places: %s %s %s", h.Dir(), h.Socket(), h.Journal())
	}
	if _, err := daemon.OpenHome(dir); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestHomesThatCannotBeUsed(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	loose := filepath.Join(base, "loose")
	if err := os.Mkdir(loose, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(loose, 0o770); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		dir   string
		code  cove.Code
		words string
	}{
		{file, cove.Invalid, "is not a directory"},
		{filepath.Join(file, "below"), cove.Unavailable, "lies below something that is not a directory"},
		{loose, cove.Invalid, "can be changed by others (mode 0770); run chmod go-w " + loose},
		{filepath.Join(base, strings.Repeat("x", 120)), cove.Invalid, "is too long by"},
	} {
		_, err := daemon.OpenHome(tc.dir)
		mustSay(t, err, tc.code, tc.words)
	}
	if names := entries(t, base); len(names) != 2 {
		t.Errorf("left behind: %v", names)
	}
}

func TestHomeOfSomebodyElse(t *testing.T) {
	asRoot(t)
	dir := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	_, err := daemon.OpenHome(dir)
	mustSay(t, err, cove.Invalid, "belongs to nobody and you are root; set it to a directory of your own")
	if names := entries(t, dir); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
}

func TestHomeWithoutRoom(t *testing.T) {
	disk := mount(t, 0, "size=64k,mode=0700")
	_, err := daemon.OpenHome(filepath.Join(disk, "a", "home"))
	mustSay(t, err, cove.Unavailable, "is full: it needs 256k at least")
	if names := entries(t, disk); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
}

func TestHomeThatIsReadOnly(t *testing.T) {
	disk := mount(t, syscall.MS_RDONLY, "mode=0700")
	for _, dir := range []string{disk, filepath.Join(disk, "home")} {
		_, err := daemon.OpenHome(dir)
		mustSay(t, err, cove.Unavailable, "is on a read-only file system")
	}
}
