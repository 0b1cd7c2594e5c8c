package fence

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/landlock"
	"github.com/cove-sandbox/cove/internal/linux/mount"
)

// VolumeFault is what every error about a volume begins with.
const VolumeFault = "volume "

// MapFault is in the error about a volume whose users cannot be mapped.
const MapFault = "map the users of"

func volumeFault(v Volume, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(VolumeFault+"%s: %w", v.Target, err)
}

// forest is the volumes of an order, mounted nowhere until they are attached.
type forest []tree

// tree is one of them. Its target is above those that lie in it.
type tree struct {
	Volume

	mounts *os.File
	place  *os.File // where it is attached, as seen inside; if it can be written to
}

func (f forest) close() {
	for _, t := range f {
		_ = t.mounts.Close()
		if t.place != nil {
			_ = t.place.Close()
		}
	}
}

// volumes copies the mounts of an order's volumes, and takes from them what a
// sandbox must not have.
func (b *Builder) volumes(o Order, h Handles) (forest, error) {
	if len(o.Volumes) != len(h.Volumes) {
		return nil, protocol.ErrMalformed
	}
	var f forest
	for i, v := range o.Volumes {
		mounts, err := b.open(v, h.Volumes[i])
		if err != nil {
			f.close()
			return nil, volumeFault(v, err)
		}
		f = append(f, tree{Volume: v, mounts: mounts})
	}
	slices.SortFunc(f, func(a, b tree) int { return strings.Compare(a.Target, b.Target) })
	return f, nil
}

func (b *Builder) open(v Volume, h VolumeHandles) (mounts *os.File, err error) {
	switch {
	case v.Ready:
		var fd int
		fd, err = unix.FcntlInt(uintptr(h.Source), unix.F_DUPFD_CLOEXEC, 0)
		mounts = os.NewFile(uintptr(fd), "mount")
	case b.view == nil:
		mounts, err = mount.CloneAll(h.Source)
	default:
		err = b.view.do(func() (err error) {
			mounts, err = cloneSame(v.Source, h.Source)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	flags := mount.NoSetuid | mount.NoDevices
	if !v.Write {
		flags |= mount.ReadOnly
	}
	if err = mount.Confine(mounts, flags); err == nil && v.Mapped {
		err = mount.MapUsers(mounts, h.Users)
	}
	if err != nil {
		_ = mounts.Close()
		return nil, err
	}
	return mounts, nil
}

// cloneSame copies the mounts at a path, which must be what a descriptor from
// another mount namespace stands for.
func cloneSame(source string, fd int) (*os.File, error) {
	found, err := mount.Find(source)
	if err != nil {
		return nil, err
	}
	defer func() { _ = found.Close() }()
	var want, have unix.Stat_t
	if err := unix.Fstat(fd, &want); err != nil {
		return nil, err
	}
	if err := unix.Fstat(int(found.Fd()), &have); err != nil {
		return nil, err
	}
	if want.Dev != have.Dev || want.Ino != have.Ino {
		return nil, fmt.Errorf("%s is another one than it was a moment ago, or was mounted meanwhile", source)
	}
	return mount.CloneAll(int(found.Fd()))
}

// plant gives the room a root in which all targets are. Nobody else has it.
func (f forest) plant() error {
	if !slices.ContainsFunc(f, func(t tree) bool { return t.Target != workspace }) {
		return nil
	}
	// Of the room, only the root is there yet.
	const stage = workspace
	top := mount.Tmpfs{Size: 1 << 20, Files: 4096, Mode: 0o755, Flags: mount.NoSetuid | mount.NoDevices}
	if err := top.Mount(stage); err != nil {
		return err
	}
	var here unix.Stat_t
	if err := unix.Stat("/", &here); err != nil {
		return &os.PathError{Op: "stat", Path: "/", Err: err}
	}
	if err := f.mirror(stage, "/", here.Dev); err != nil {
		return err
	}
	for _, t := range f {
		if f.within(t.Target) || within("/tmp", t.Target) {
			continue // it is in what is mounted later
		}
		if err := makeTarget(stage, t.Volume); err != nil {
			return volumeFault(t.Volume, err)
		}
	}
	if err := mount.Pivot(stage); err != nil {
		return err
	}
	return mount.RestrictOne("/", mount.ReadOnly|mount.NoSetuid|mount.NoDevices)
}

// within reports whether a target lies in another volume.
func (f forest) within(target string) bool {
	return slices.ContainsFunc(f, func(o tree) bool { return o.Target != target && within(o.Target, target) })
}

// within reports whether a clean absolute path is dir or below it.
func within(dir, p string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// mirror shows what is in a directory of the root at the same place of the stage:
// directories above targets are made anew, since nothing can be made in the old
// ones, and the rest is shown as it is.
func (f forest) mirror(stage, dir string, device uint64) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		from := path.Join(dir, e.Name())
		if from == stage {
			if err := makeDir(path.Join(stage, from)); err != nil {
				return &os.PathError{Op: "mkdir", Path: from, Err: err}
			}
			continue
		}
		if err := f.show(stage, from, device); err != nil {
			return err
		}
	}
	return nil
}

// show puts one entry of the root onto the stage.
func (f forest) show(stage, from string, device uint64) error {
	to := stage + from
	var st unix.Stat_t
	if err := unix.Lstat(from, &st); err != nil {
		return &os.PathError{Op: "stat", Path: from, Err: err}
	}
	kind := st.Mode & unix.S_IFMT
	if kind == unix.S_IFLNK {
		link, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(link, to)
	}
	if slices.ContainsFunc(f, func(t tree) bool { return t.Target == from }) {
		return nil // hidden by it
	}
	if kind == unix.S_IFDIR {
		if err := unix.Mkdir(to, 0o755); err != nil {
			return &os.PathError{Op: "mkdir", Path: from, Err: err}
		}
		above := slices.ContainsFunc(f, func(t tree) bool { return within(from, t.Target) })
		if above && from != "/tmp" && st.Dev == device {
			if err := unix.Chmod(to, st.Mode&0o7777); err != nil {
				return &os.PathError{Op: "chmod", Path: from, Err: err}
			}
			return f.mirror(stage, from, device)
		}
	} else if err := makeFile(to); err != nil {
		return err
	}
	return mount.Bind(from, to)
}

// makeTarget makes what a volume can be attached to, and the directories above.
func makeTarget(stage string, v Volume) error {
	parts := strings.Split(strings.TrimPrefix(v.Target, "/"), "/")
	at := stage
	for i, part := range parts {
		at = path.Join(at, part)
		if i == len(parts)-1 && !v.Dir {
			return makeFile(at)
		}
		if err := makeDir(at); err != nil {
			return &os.PathError{Op: "mkdir", Path: v.Target, Err: err}
		}
		// What is no directory of the stage itself is a part of the host.
		var st, top unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return &os.PathError{Op: "stat", Path: v.Target, Err: err}
		}
		if err := unix.Lstat(stage, &top); err != nil {
			return &os.PathError{Op: "stat", Path: stage, Err: err}
		}
		if st.Dev != top.Dev || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return &os.PathError{Op: "mount at", Path: v.Target, Err: unix.ENOTDIR}
		}
	}
	return nil
}

// makeDir makes a directory that is not there. The umask is nobody's business.
func makeDir(at string) error {
	err := unix.Mkdir(at, 0o755)
	if err == unix.EEXIST {
		return nil
	}
	if err == nil {
		err = unix.Chmod(at, 0o755)
	}
	return err
}

func makeFile(at string) error {
	// What is forked meanwhile would hold it open for writing.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Open(at, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return &os.PathError{Op: "make", Path: at, Err: err}
	}
	return unix.Close(fd)
}

// attach mounts the volumes, in the room, onto their targets. A target in another
// volume must be there: nothing is made on the host.
func (f forest) attach() error {
	for i := range f {
		if err := f[i].attach(within("/tmp", f[i].Target) && f[i].Target != "/tmp" && !f.within(f[i].Target)); err != nil {
			return volumeFault(f[i].Volume, err)
		}
	}
	return nil
}

func (t *tree) attach(fresh bool) error {
	if fresh {
		if err := makeTarget("/tmp", Volume{Target: strings.TrimPrefix(t.Target, "/tmp"), Dir: t.Dir}); err != nil {
			return err
		}
	}
	target, err := mount.Find(t.Target)
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }()
	if err := mount.AttachTo(t.mounts, target); err != nil {
		return err
	}
	if t.Within != "" {
		if err := mount.BindOne(path.Join(t.Target, t.Within), t.Target); err != nil {
			return err
		}
	}
	if !t.Write {
		return nil
	}
	t.place, err = mount.Find(t.Target)
	return err
}

// rules let the volumes be written to that can be.
func (f forest) rules() []landlock.Rule {
	var rules []landlock.Rule
	for _, t := range f {
		if t.place != nil {
			rules = append(rules, landlock.Rule{File: int(t.place.Fd()), Allow: landlock.ReadWrite})
		}
	}
	return rules
}
