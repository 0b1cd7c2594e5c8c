package mount

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
)

// failure is an error of a mount: what was done where, and what the kernel said.
func failure(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mount: %w", &os.PathError{Op: op, Path: path, Err: err})
}

// Private keeps what happens to mounts at a path and below it in this namespace
// from others, and what happens there from this one. The path is a mount point,
// in general /.
func Private(path string) error {
	return failure("make private", path, unix.Mount("", path, "", unix.MS_REC|unix.MS_PRIVATE, ""))
}

// Bind shows source, with everything mounted below it, at target. Both exist,
// and both are directories or neither is.
func Bind(source, target string) error {
	return failure("bind "+source+" to", target, unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""))
}

// BindOne shows source at target, without what is mounted below it.
func BindOne(source, target string) error {
	return failure("bind "+source+" to", target, unix.Mount(source, target, "", unix.MS_BIND, ""))
}

// Proc mounts the processes of the caller's pid namespace. Where all of /proc
// that the caller can see is masked, as in most containers, the kernel refuses
// with EPERM.
func Proc(target string) error {
	return failure("proc on", target, unix.Mount("proc", target, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""))
}

// maxTerminals bounds the terminals of one mount: the kernel has some thousands
// for all of them together.
const maxTerminals = "64"

// Terminals mounts pseudo terminals of its own, a few of them, with a ptmx that
// everybody may open.
func Terminals(target string) error {
	return failure("devpts on", target, unix.Mount("devpts", target, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,max="+maxTerminals))
}

// Detach takes away what is mounted at target, with everything below it, as soon
// as nobody uses it; nobody new can.
func Detach(target string) error {
	return failure("detach", target, unix.Unmount(target, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW))
}

// Pivot makes a mount point the root of the namespace, and of the calling
// process, which is in its / afterwards. The old root is gone.
func Pivot(root string) error {
	if err := unix.Chdir(root); err != nil {
		return failure("enter", root, err)
	}
	// Stacked on itself the old root needs no directory to be put in, and is on
	// top, where it can be taken off.
	if err := unix.PivotRoot(".", "."); err != nil {
		return failure("pivot to", root, err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return failure("detach the old root behind", root, err)
	}
	return failure("enter", "/", unix.Chdir("/"))
}

// Report is what the kernel has: nil, or a [linux.Missing].
type Report struct {
	SetAttr     error // changing a whole tree at once; Restrict has another way
	Descriptors error // mounts as descriptors: OpenTree, NewTmpfs, Attach
}

// Probe looks which calls the kernel has. Whether the caller may mount anything
// is a matter of privileges.
func Probe() Report {
	var r Report
	// Calls that exist complain about the arguments, or about the caller.
	if err := unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{}); absent(err) {
		r.SetAttr = &linux.Missing{Feature: "mount_setattr", Why: "the kernel is too old", Remedy: "use Linux 5.12 or newer", Err: err}
	}
	if _, err := unix.OpenTree(-1, "", unix.OPEN_TREE_CLOEXEC); absent(err) {
		r.Descriptors = &linux.Missing{Feature: "open_tree", Why: "the kernel is too old", Remedy: "use Linux 5.2 or newer", Err: err}
	}
	return r
}
