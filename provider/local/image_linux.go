package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/loop"
	"github.com/cove-sandbox/cove/internal/linux/mount"
)

// block is the unit in which a workspace on disk is counted.
const block = 4096

// workspaceDir is the directory of a file system that is the workspace. What
// stands beside it, a sandbox does not see.
const workspaceDir = "0"

// molds makes images of empty file systems: one of each size, from which those
// of sandboxes are copied.
type molds struct {
	dir  string // without links
	mkfs string

	mu sync.Mutex // one is made at a time
}

// findMkfs returns the program that makes file systems, or a [linux.Missing]: the
// system's own where there is one, since it is run as root.
func findMkfs() (string, error) {
	for _, program := range []string{"/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4", "mkfs.ext4"} {
		if path, err := exec.LookPath(program); err == nil && filepath.IsAbs(path) {
			return path, nil
		}
	}
	return "", &linux.Missing{Feature: "disk workspaces", Why: "there is no mkfs.ext4", Remedy: "install e2fsprogs"}
}

// maxMolds bounds how many are kept.
const maxMolds = 16

// open opens an image with room for so many blocks and files. The caller closes
// it.
func (m *molds) open(ctx context.Context, blocks, files int64) (*os.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	path := filepath.Join(m.dir, strconv.FormatInt(blocks, 10)+"-"+strconv.FormatInt(files, 10))
	if f, err := os.Open(path); err == nil { //nolint:gosec // ours
		return f, nil
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, err
	}
	if err := m.thin(); err != nil {
		return nil, err
	}
	temp := filepath.Join(m.dir, "new")
	defer func() { _ = os.Remove(temp) }()
	if err := m.cast(ctx, temp, blocks, files); err != nil {
		return nil, err
	}
	if err := os.Rename(temp, path); err != nil {
		return nil, err
	}
	return os.Open(path) //nolint:gosec // ours
}

// thin makes place for another mold.
func (m *molds) thin() error {
	entries, err := os.ReadDir(m.dir)
	if err != nil || len(entries) < maxMolds {
		return err
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(m.dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// cast makes an image. How much of it the file system takes for itself is known
// when it is there: so it is made twice, and what is left over is taken away.
func (m *molds) cast(ctx context.Context, path string, blocks, files int64) error {
	inodes := files + 16
	total := blocks + blocks/32 + inodes/16 + 8192
	for range 4 {
		if err := m.format(ctx, path, total, inodes); err != nil {
			return err
		}
		over := int64(0)
		err := m.within(path, func(root int) error {
			var err error
			over, err = prepare(root, blocks, files)
			return err
		})
		if err != nil {
			return err
		}
		switch {
		case over > 1024:
			total -= over - 512
		case over < 0:
			total += 1024 - over
		default:
			return m.within(path, func(root int) error { return fill(root, blocks, files) })
		}
	}
	return fmt.Errorf("a file system with %d blocks and %d files cannot be made", blocks, files)
}

// format makes a file system in a new file. Nothing of it outlives its sandbox,
// so it needs no journal.
func (m *molds) format(ctx context.Context, path string, blocks, inodes int64) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // ours
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(blocks*block), f.Close()); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, m.mkfs, "-q", "-F", "-b", strconv.Itoa(block), "-I", "256", "-m", "0", "-N", strconv.FormatInt(inodes, 10), //nolint:gosec // found by us
		"-O", "none,filetype,sparse_super,large_file,huge_file,extent,dir_index,dir_nlink,metadata_csum,64bit,extra_isize",
		"-E", "lazy_itable_init=1,nodiscard", path)
	// The settings of the host would change what we count with.
	cmd.Env = []string{"MKE2FS_CONFIG=/dev/null", "LANG=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("mkfs.ext4: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return nil
}

// within mounts an image where nobody sees it and does something in its root.
func (m *molds) within(path string, do func(root int) error) error {
	tree, err := mountImage(path)
	if err != nil {
		return err
	}
	root := int(tree.Fd())
	dir, err := unix.Openat(root, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = do(dir)
		err = errors.Join(err, unix.Syncfs(dir), unix.Close(dir))
	}
	return errors.Join(err, tree.Close())
}

// mountImage mounts the file system of an image nowhere yet.
func mountImage(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // ours
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	d, err := loop.Attach(f)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	// What was never written to is zero already.
	return mount.Disk{Type: "ext4", Source: d.Path(), Options: []string{"noinit_itable"}, Flags: mount.NoSetuid | mount.NoDevices}.New()
}

// prepare makes what every workspace has, uses up the files that are too many,
// and returns how many blocks are.
func prepare(root int, blocks, files int64) (over int64, err error) {
	if err := unix.Unlinkat(root, "lost+found", unix.AT_REMOVEDIR); err != nil {
		return 0, os.NewSyscallError("unlinkat", err)
	}
	for _, dir := range []string{workspaceDir, "spare"} {
		if err := unix.Mkdirat(root, dir, 0o755); err != nil {
			return 0, os.NewSyscallError("mkdirat", err)
		}
	}
	st, err := statfs(root)
	if err != nil {
		return 0, err
	}
	// One more is the file that uses up blocks.
	for i := range int64(st.Ffree) - files { //nolint:gosec // of a file system of ours
		name := "spare/blocks"
		if i > 0 {
			name = "spare/" + strconv.FormatInt(i, 10)
		}
		fd, err := unix.Openat(root, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return 0, os.NewSyscallError("openat", err)
		}
		_ = unix.Close(fd)
	}
	if st, err = statfs(root); err != nil {
		return 0, err
	}
	return int64(st.Bavail) - blocks, nil //nolint:gosec // of a file system of ours
}

func statfs(fd int) (st unix.Statfs_t, err error) {
	err = unix.Fstatfs(fd, &st)
	return st, os.NewSyscallError("fstatfs", err)
}

// fill uses up the blocks that are too many, and looks whether the rest is what
// was asked for.
func fill(root int, blocks, files int64) error {
	fd, err := unix.Openat(root, "spare/blocks", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("openat", err)
	}
	defer func() { _ = unix.Close(fd) }()
	size := int64(0)
	for range 8 {
		st, err := statfs(root)
		if err != nil {
			return err
		}
		over := int64(st.Bavail) - blocks          //nolint:gosec // of a file system of ours
		if over == 0 && int64(st.Ffree) == files { //nolint:gosec // of a file system of ours
			return nil
		}
		if size += over * block; size < 0 {
			break
		}
		if over < 0 {
			err = unix.Ftruncate(fd, size)
		} else if over > 0 {
			err = unix.Fallocate(fd, 0, 0, size)
		}
		// Freed blocks are counted when they are on the disk.
		if err = errors.Join(err, unix.Syncfs(root)); err != nil {
			return fmt.Errorf("fill a file system: %w", err)
		}
	}
	return fmt.Errorf("the file system cannot be given %d blocks and %d files", blocks, files)
}
