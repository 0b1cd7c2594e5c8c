package mount_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/mount"
)

func TestResizeTree(t *testing.T) { both(t, "trees", 0) }

// resizeTree gives a file system other bounds that is known by a descriptor
// only.
func resizeTree(base string, _ []string) error {
	dir := base + "/t"
	if err := mkdirs(dir); err != nil {
		return err
	}
	tree, err := mount.Tmpfs{Size: 1 << 20, Files: 10, Mode: 0o755, Flags: mount.NoSetuid | mount.NoExecute}.New()
	if err != nil {
		return err
	}
	defer tree.Close()
	if err := (mount.Tmpfs{Size: 4096, Files: 5}).ResizeTree(tree); err != nil {
		return fmt.Errorf("before it is anywhere: %w", err)
	}
	if err := mount.Attach(tree, dir); err != nil {
		return err
	}
	if n, err := fill(dir); n != 5 {
		return fmt.Errorf("%d files: %w", n, err)
	}
	if err := (mount.Tmpfs{Size: 2 << 20, Files: 20}).ResizeTree(tree); err != nil {
		return err
	}
	if n, err := room(dir + "/0"); n != 2<<20 {
		return fmt.Errorf("%d bytes: %w", n, err)
	}
	return errors.Join(
		wantError("smaller than what is in it", mount.Tmpfs{Size: 1 << 20, Files: 20}.ResizeTree(tree), unix.EINVAL),
		wantError("no bounds", mount.Tmpfs{}.ResizeTree(tree), nil),
		notResized("/proc/self/cmdline"),
		expectFlags(dir, mount.NoSetuid|mount.NoExecute),
	)
}

// notResized demands that a file cannot be resized, open or closed.
func notResized(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	bounds := mount.Tmpfs{Size: 1 << 20, Files: 5}
	err = wantError(path, bounds.ResizeTree(f), nil)
	_ = f.Close()
	return errors.Join(err, wantError("closed", bounds.ResizeTree(f), nil))
}

func wantError(what string, err, errno error) error {
	if err == nil || errno != nil && !errors.Is(err, errno) {
		return fmt.Errorf("%s: %w", what, errors.Join(errors.New("another end than it must have"), err))
	}
	return nil
}
