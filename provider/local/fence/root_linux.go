package fence

import (
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/mount"
)

// EmptyDir and EmptyFile are those of every tree in which nothing is: what is shown
// by a [Bind] without a source. Nothing may be bound there.
const (
	EmptyDir  = "/mnt"
	EmptyFile = "/run/nothing"
)

// rootBounds is room for the few small files of a root itself.
var rootBounds = Bounds{Size: 8 << 20, Files: 16384}

// build makes the tree and turns it into the root of the calling thread's mount
// namespace, of which nothing else is left.
func (r *Root) build() error {
	// Modes are what the plan says. Whoever calls has a mask for himself: a room's
	// thread, or a spawner that is about to begin.
	defer unix.Umask(unix.Umask(0))
	if err := mount.Private("/"); err != nil {
		return err
	}
	top := mount.Tmpfs{Size: rootBounds.Size, Files: rootBounds.Files, Mode: 0o755, Flags: mount.NoSetuid}
	if err := top.Mount(r.Stage); err != nil {
		return err
	}
	for _, furnish := range []func() error{r.directories, r.texts, r.binds, r.devices} {
		if err := furnish(); err != nil {
			return err
		}
	}
	if err := mount.Pivot(r.Stage); err != nil {
		return err
	}
	if r.Shallow {
		return r.restrictEach()
	}
	return mount.Restrict("/", mount.ReadOnly|mount.NoSetuid)
}

// restrictEach makes the mounts of the tree read-only, each by itself.
func (r *Root) restrictEach() error {
	paths := []string{"/"}
	for _, b := range r.Binds {
		if b.Source != "" { // what is empty need not be there
			paths = append(paths, b.Path)
		}
	}
	for _, path := range paths {
		if err := mount.RestrictOne(path, mount.ReadOnly|mount.NoSetuid); err != nil {
			return err
		}
	}
	return nil
}

// at is where a path of the tree is while it is built. Both are clean.
func (r *Root) at(path string) string { return r.Stage + path }

func (r *Root) directories() error {
	for _, d := range r.Dirs {
		if err := unix.Mkdir(r.at(d.Path), d.Mode); err != nil && err != unix.EEXIST {
			return &os.PathError{Op: "mkdir", Path: d.Path, Err: err}
		}
	}
	return nil
}

func (r *Root) texts() error {
	for _, l := range r.Links {
		if err := os.Symlink(l.To, r.at(l.Path)); err != nil {
			return err
		}
	}
	for _, f := range r.Files {
		if err := r.write(f.Path, f.Text); err != nil {
			return &os.PathError{Op: "write", Path: f.Path, Err: err}
		}
	}
	return nil
}

// binds shows parts of the host. Their devices are nobody's: those that a
// sandbox has are named.
func (r *Root) binds() error {
	all := r.Binds
	if r.Evidence != "" {
		all = append(all, Bind{Source: "/proc", Path: r.Evidence, Dir: true})
	}
	for _, b := range all {
		if b.Source == "" && unix.Access(r.at(b.Path), unix.F_OK) == unix.ENOENT {
			continue // what was mounted there is not shown
		}
		if err := r.mountPoint(b.Path, b.Dir); err != nil {
			return err
		}
		show := r.bind
		if len(b.Over) > 0 || b.Keep {
			show = r.stack
		}
		if err := show(b); err != nil {
			return err
		}
	}
	return mount.Restrict(r.Stage, mount.NoDevices)
}

func (r *Root) bind(b Bind) error {
	switch {
	case b.Source != "":
		return mount.Bind(b.Source, r.at(b.Path))
	case b.Dir:
		return mount.BindOne(r.at(EmptyDir), r.at(b.Path))
	}
	return mount.BindOne(r.at(EmptyFile), r.at(b.Path))
}

// stack shows directories that lie over one another.
func (r *Root) stack(b Bind) error {
	paths := append(slices.Clone(b.Over), b.Source)
	if b.Keep {
		paths = append([]string{r.at(b.Path)}, paths...)
	}
	proc, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: "/proc", Err: err}
	}
	defer func() { _ = unix.Close(proc) }()
	o := mount.Overlay{Upper: -1, Work: -1, User: true, Source: "template", Flags: mount.ReadOnly | mount.NoSetuid | mount.NoDevices, Proc: proc}
	for _, path := range paths {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: path, Err: err}
		}
		defer func() { _ = unix.Close(fd) }()
		o.Lower = append(o.Lower, fd)
	}
	tree, err := o.New()
	if err != nil {
		return fmt.Errorf("%s: %w", b.Path, err)
	}
	defer func() { _ = tree.Close() }()
	return mount.Attach(tree, r.at(b.Path))
}

func (r *Root) devices() error {
	for _, name := range r.Devices {
		path := "/dev/" + name
		if err := r.mountPoint(path, false); err != nil {
			return err
		}
		if err := mount.BindOne(path, r.at(path)); err != nil {
			return err
		}
	}
	return nil
}

// mountPoint makes what a mount can be put on, if it is not there.
func (r *Root) mountPoint(path string, dir bool) error {
	if dir {
		err := unix.Mkdir(r.at(path), 0o755)
		if err == nil || err == unix.EEXIST {
			return nil
		}
		return &os.PathError{Op: "mkdir", Path: path, Err: err}
	}
	// What is there may be a file of the host's, which is not opened for that.
	if err := unix.Mknod(r.at(path), unix.S_IFREG|0o644, 0); err != nil && err != unix.EEXIST {
		return &os.PathError{Op: "make", Path: path, Err: err}
	}
	return nil
}

// write makes a file that everybody may read. Many are made before the first
// sandbox of a run, and an os.File would cost each of them twice as many calls.
func (r *Root) write(path string, text []byte) error {
	// What is forked meanwhile would hold the file open for writing, and the
	// tree could not be made read-only.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Open(r.at(path), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	for len(text) > 0 {
		n, err := unix.Write(fd, text)
		if err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}
