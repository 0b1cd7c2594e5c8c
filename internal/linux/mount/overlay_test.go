package mount_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/mount"
)

func TestOverlay(t *testing.T) { both(t, "overlay", 0) }

// overlay stacks layers of a file system that is mounted nowhere, uses them, and
// takes them off.
func overlay(base string, _ []string) error {
	runtime.LockOSThread() // the directory of the thread changes
	store, err := mount.Tmpfs{Size: 1 << 20, Files: 100, Mode: 0o755}.New()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	proc, err := unix.Open("/proc", unix.O_PATH, 0)
	if err != nil {
		return err
	}
	o := mount.Overlay{Upper: -1, Work: -1, Proc: proc, User: os.Getuid() != 0 || !initial()}
	if _, err := o.New(); !errors.Is(err, unix.E2BIG) {
		return fmt.Errorf("an overlay of nothing: %w", err)
	}
	fds := map[string]int{}
	for _, name := range []string{"low", "mid", "up", "work"} {
		if err := unix.Mkdirat(int(store.Fd()), name, 0o755); err != nil {
			return err
		}
		if fds[name], err = unix.Openat(int(store.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY, 0); err != nil {
			return err
		}
	}
	for name, dir := range map[string]string{"a": "low", "b": "mid"} {
		fd, err := unix.Openat(fds[dir], name, unix.O_CREAT|unix.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		_ = unix.Close(fd)
	}
	o.Lower, o.Upper, o.Work = []int{fds["mid"], fds["low"]}, fds["up"], fds["work"]
	tree, err := o.New()
	if err != nil {
		return err
	}
	defer func() { _ = tree.Close() }()
	at := base + "/at"
	if err := errors.Join(os.Mkdir(at, 0o755), mount.Attach(tree, at), os.Remove(at+"/a"), os.WriteFile(at+"/c", nil, 0o600)); err != nil {
		return err
	}
	if err := tree.Close(); err != nil {
		return err
	}
	if names, err := os.ReadDir(at); err != nil || len(names) != 2 {
		return fmt.Errorf("it shows %v: %w", names, err)
	}
	f, err := os.Open(at + "/c")
	if err != nil {
		return err
	}
	if err := mount.Leave(at); !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("leaving what is in use: %w", err)
	}
	if err := errors.Join(f.Close(), mount.Leave(at)); err != nil {
		return err
	}
	if _, err := os.Lstat(at + "/c"); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("it is there still: %w", err)
	}
	if _, err := mount.Clone(int(store.Fd()), "none"); !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("a clone of nothing: %w", err)
	}
	one, err := mount.Clone(int(store.Fd()), "up")
	if err != nil {
		return err
	}
	defer func() { _ = one.Close() }()
	if err := mount.MapUsers(one, proc); err == nil {
		return errors.New("owners were mapped by what is no user namespace")
	}
	return errors.Join(mount.Attach(one, at), statted(at+"/c"))
}

func statted(name string) error {
	_, err := os.Lstat(name)
	return err
}

// initial reports whether this is the user namespace of the machine.
func initial() bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && len(text) > 0 && string(text[len(text)-11:]) == "4294967295\n"
}
