package fence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/mount"
)

// covers are the directories at the top that a root shows, each with what is mounted on
// files and directories in it.
type covers map[string][]string

// covers looks at the mounts of the calling thread, whose root it is. Proc is a
// descriptor of a /proc that shows it.
func (r *Root) covers(proc int) (covers, error) {
	const name = "thread-self/mountinfo"
	fd, err := unix.Openat(proc, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/proc/" + name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() { _ = f.Close() }()
	table, err := mount.Parse(f)
	if err != nil {
		return nil, err
	}
	c := covers{}
	for _, b := range r.Binds {
		if !b.Dir || filepath.Dir(b.Path) != "/" {
			continue
		}
		at := -1
		for _, m := range table {
			if m.Point == b.Path {
				at = m.ID // the last one is on top
			}
		}
		c[b.Path] = nil
		for _, m := range table {
			if m.Parent == at {
				c[b.Path] = append(c[b.Path], m.Point)
			}
		}
	}
	return c, nil
}

// cover lays an overlay of this mount namespace's own over each directory, so that its
// files are other ones to the kernel than those of the host and of other sandboxes: a process
// that locks one holds back no other. What is mounted in it stays there, as it is. Where
// the kernel has no overlays for us, or none over what is two already, a directory stays
// what it is. Proc is a descriptor of a /proc that shows us.
func (c covers) cover(proc int) error {
	if len(c) == 0 {
		return nil
	}
	empty, err := unix.Open(EmptyDir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: EmptyDir, Err: err}
	}
	defer func() { _ = unix.Close(empty) }()
	for path, in := range c {
		if err := coverOne(path, in, empty, proc); err != nil {
			return fmt.Errorf("files of its own at %s: %w", path, err)
		}
	}
	return unix.Chdir("/") // the overlays left us elsewhere
}

func coverOne(path string, in []string, empty, proc int) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	// A tree without a layer to write to has two layers or more.
	o := mount.Overlay{Lower: []int{fd, empty}, Upper: -1, Work: -1, User: true, Source: "host", Flags: mount.ReadOnly | mount.NoSetuid | mount.NoDevices, Proc: proc}
	tree, err := o.New()
	if err != nil {
		return tolerated(err)
	}
	defer func() { _ = tree.Close() }()
	var copies []*os.File
	for _, point := range in {
		c, err := mount.OpenTree(point, true)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		copies = append(copies, c)
	}
	if err := mount.Attach(tree, path); err != nil {
		return err
	}
	for i, c := range copies {
		if err := mount.Attach(c, in[i]); err != nil {
			return err
		}
	}
	return nil
}

// tolerated is nil for an overlay that the kernel cannot make: it has none, none for
// users, or there would be too many over each other.
func tolerated(err error) error {
	for _, known := range []error{unix.ENODEV, unix.EPERM, unix.EINVAL} {
		if errors.Is(err, known) {
			return nil
		}
	}
	return err
}

// buildCovered is build, and what covers it. It opens the caller's /proc before that is
// out of reach.
func (r *Root) buildCovered() error {
	proc, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: "/proc", Err: err}
	}
	defer func() { _ = unix.Close(proc) }()
	if err := r.build(); err != nil {
		return err
	}
	c, err := r.covers(proc)
	if err != nil {
		return err
	}
	return c.cover(proc)
}
