//go:build linux

package loop_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/loop"
	"github.com/cove-sandbox/cove/internal/linux/mount"
)

func TestMain(m *testing.M) {
	linuxtest.Main(m, map[string]linuxtest.Func{"tests": linuxtest.Tests})
}

// gone waits until no device shows a file.
func gone(t *testing.T, path string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(30 * time.Second)
	for loop.Attached(path) {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("the device stays")
		}
	}
}

func TestAttach(t *testing.T) {
	linuxtest.NeedRoot(t)
	linuxtest.NoLeaks(t, "")
	linuxtest.Need(t, loop.Probe())
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if loop.Attached(path) {
		t.Error("it is attached before")
	}
	d, err := loop.Attach(f)
	_ = f.Close()
	if err != nil {
		t.Fatal(err)
	}
	if !loop.Attached(path) {
		t.Errorf("%s is not attached", d.Path())
	}
	if _, err := (mount.Disk{Type: "ext4", Source: d.Path()}).New(); err == nil {
		t.Error("zeros were mounted")
	}
	if err := os.Remove(path); err != nil {
		t.Error(err)
	}
	if !loop.Attached(path) {
		t.Error("it is not attached when the file has no name")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	gone(t, path)
}

func TestNoDevices(t *testing.T) {
	linuxtest.NeedRoot(t)
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	if d, err := loop.Attach(dir); err == nil {
		t.Errorf("a directory is %s", d.Path())
	}
	linuxtest.Again(t, "^TestOrdinary$")
}

func TestOrdinary(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("an ordinary user runs this")
	}
	err := loop.Probe()
	if linux.RemedyOf(err) == "" {
		t.Errorf("an ordinary user can: %v", err)
	}
	if _, err := loop.Attach(os.Stdin); linux.RemedyOf(err) == "" {
		t.Errorf("an ordinary user did: %v", err)
	}
}
