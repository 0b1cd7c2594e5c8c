package initproc

import (
	"golang.org/x/sys/unix"
)

// mountProc mounts the /proc of a process's pid namespace in the mount namespace
// of the calling thread, before anything untrusted runs. Nothing there is for a
// sandbox to change; some of it everybody may.
func mountProc(p Process) error {
	if old || mountNamed(p) != nil {
		if err := mountInside(p); err != nil {
			return err
		}
	}
	return maskProc()
}

// masked are the files of /proc that tell of the machine, or of what others do on it, and
// that programs can do without. Not every kernel has each.
var masked = []string{
	"bootconfig", "cmdline", "config.gz", "diskstats", "interrupts", "key-users", "keys", "latency_stats", "modules", "partitions",
	"pressure/cpu", "pressure/io", "pressure/irq", "pressure/memory", "sched_debug", "schedstat", "softirqs", "swaps", "timer_list",
}

// maskProc shows nothing in their places. There is a null device in every root.
func maskProc() error {
	for _, name := range masked {
		if err := unix.Mount("/dev/null", "/proc/"+name, "", unix.MS_BIND, ""); err != nil && err != unix.ENOENT {
			return &Error{Step: "hide /proc/" + name, Errno: errnoOf(err)}
		}
	}
	return nil
}

// old makes us do without what kernels before 6.17 lack.
var old bool

// getPIDNamespace is the ioctl of a pidfd that opens the namespace.
const getPIDNamespace = 0xff05

// mountNamed names the namespace to the kernel, which can be done from 6.17 on.
func mountNamed(p Process) error {
	space, err := unix.IoctlRetInt(p.FD, getPIDNamespace)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(space) }()
	fs, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fs) }()
	if err := unix.FsconfigSetFd(fs, "pidns", space); err != nil {
		return err
	}
	if err := unix.FsconfigSetString(fs, "source", "proc"); err != nil {
		return err
	}
	if err := unix.FsconfigSetFlag(fs, "ro"); err != nil {
		return err
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return err
	}
	tree, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(tree) }()
	return unix.MoveMount(tree, "", unix.AT_FDCWD, "/proc", unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// mountInside has a member of the namespace do it. It must have privileges in the
// namespace of mounts, too, and neither the process nor the caller is both: so a
// third one does it.
func mountInside(p Process) error {
	if err := unix.Setns(p.FD, unix.CLONE_NEWPID); err != nil {
		return &Error{Step: "enter the pid namespace", Errno: errnoOf(err)}
	}
	s := &script{}
	s.call("mount /proc", unix.SYS_MOUNT, s.text("proc"), s.text("/proc"), s.text("proc"), unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, 0)
	s.call("end", unix.SYS_EXIT_GROUP, 0)
	helper, err := s.start(&cloneArgs{flags: unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_PIDFD, exitSignal: uint64(unix.SIGCHLD)})
	if err != nil {
		return err
	}
	reap(helper)
	return nil
}
