package escape

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bad is an argument that no call can use.
const bad = ^uintptr(0)

// spawn starts a process that ends at once, with flags for its birth.
func spawn(attr *syscall.SysProcAttr) error {
	pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Sys: attr})
	if err != nil {
		return err
	}
	_, err = syscall.Wait4(pid, nil, 0, nil)
	return err
}

// unshareUser lets a child do it: a process with threads cannot.
func unshareUser(mission) verdict {
	var t tally
	t.make(call{name: "unshare", do: func() error { return spawn(&syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWUSER}) }, twin: sys(unix.SYS_UNSHARE, 0)})
	return t.verdict()
}

func cloneUser(mission) verdict {
	var t tally
	for name, flag := range map[string]uintptr{
		"user": unix.CLONE_NEWUSER, "mount": unix.CLONE_NEWNS, "network": unix.CLONE_NEWNET, "pid": unix.CLONE_NEWPID, "user and mount": unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
	} {
		t.make(call{name: "clone with a " + name + " namespace", do: func() error { return spawn(&syscall.SysProcAttr{Cloneflags: flag}) }})
	}
	return t.verdict()
}

// clone3User makes the call itself: nothing in the library does so with flags
// of our choice. The child may do nothing but end.
//
//go:norace
func clone3User(mission) verdict {
	args := [11]uint64{0: unix.CLONE_NEWUSER, 4: uint64(unix.SIGCHLD)}
	pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
	if errno == 0 && pid == 0 {
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0) //nolint:errcheck // it does not return
		}
	}
	var t tally
	t.make(call{name: "clone3", do: func() error { return failure(errno) }, twin: sys(unix.SYS_CLONE3, 0, 0)})
	return t.verdict()
}

func mountOld(mission) verdict {
	var t tally
	_ = os.Mkdir("mountpoint", 0o755) // it may be there
	twin := sys(unix.SYS_MOUNT)
	mount := func(source, target, kind string, flags uintptr) call {
		return call{name: "mount", do: func() error { return unix.Mount(source, target, kind, flags, "") }, twin: twin}
	}
	t.make(
		mount("tmpfs", "mountpoint", "tmpfs", 0),
		mount("/", "mountpoint", "", unix.MS_BIND|unix.MS_REC),
		mount("proc", "mountpoint", "proc", 0),
		mount("cgroup", "mountpoint", "cgroup2", 0),
		mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND),
		mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND),
		call{name: "umount", do: func() error { return unix.Unmount("/proc", unix.MNT_DETACH) }, twin: sys(unix.SYS_UMOUNT2, 0, 1<<20)},
	)
	return t.verdict()
}

func mountNew(mission) verdict {
	var t tally
	attr := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	here := uintptr(unix.AT_FDCWD & (1<<32 - 1))
	t.make(
		call{name: "fsopen", do: sys(unix.SYS_FSOPEN, cstring("tmpfs"), 0)},
		call{name: "open_tree", do: sys(unix.SYS_OPEN_TREE, here, cstring("/"), unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE), twin: sys(unix.SYS_OPEN_TREE, here, 0, 1<<30)},
		call{name: "move_mount", do: sys(unix.SYS_MOVE_MOUNT, here, cstring("/proc"), here, cstring("/workspace"), 0)},
		call{
			name: "mount_setattr", do: sys(unix.SYS_MOUNT_SETATTR, here, cstring("/"), unix.AT_RECURSIVE, at(attr), unsafe.Sizeof(attr)),
			twin: sys(unix.SYS_MOUNT_SETATTR, here, 0, 1<<30),
		},
		call{name: "fspick", do: sys(unix.SYS_FSPICK, here, cstring("/"), 0)},
	)
	return t.verdict()
}

func changeRoot(mission) verdict {
	var t tally
	t.make(
		call{name: "chroot", do: func() error { return unix.Chroot("/workspace") }, twin: sys(unix.SYS_CHROOT)},
		call{name: "pivot_root", do: func() error { return unix.PivotRoot("/workspace", "/workspace") }},
	)
	return t.verdict()
}

// fileHandles makes a handle up: number 2 is the top of most file systems.
func fileHandles(mission) verdict {
	var t tally
	root, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return breach("open /: " + err.Error())
	}
	defer func() { _ = unix.Close(root) }()
	handle := unix.NewFileHandle(1, []byte{2, 0, 0, 0, 0, 0, 0, 0})
	t.make(call{name: "open_by_handle_at", do: func() error {
		fd, err := unix.OpenByHandleAt(root, handle, unix.O_RDONLY)
		if err == nil {
			_ = unix.Close(fd)
		}
		if errors.Is(err, unix.ESTALE) { // the call was made, only the handle was wrong
			return nil
		}
		return err
	}})
	return t.verdict()
}

// opened makes a call that returns a descriptor.
func opened(number uintptr, args ...uintptr) func() error {
	return func() error {
		var a [6]uintptr
		copy(a[:], args)
		fd, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
		if errno == 0 {
			_ = unix.Close(int(fd))
		}
		return failure(errno)
	}
}

func ioUring(mission) verdict {
	var t tally
	t.make(call{name: "io_uring_setup", do: opened(unix.SYS_IO_URING_SETUP, 1, at([120]byte{}))})
	return t.verdict()
}

func loadBPF(mission) verdict {
	var t tally
	attr := [16]uint64{0: 4<<32 | 2, 1: 1<<32 | 4} // an array of one element
	t.make(call{name: "bpf", do: opened(unix.SYS_BPF, 0, at(attr), unsafe.Sizeof(attr))})
	return t.verdict()
}

func perfEvents(mission) verdict {
	var t tally
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Bits: unix.PerfBitDisabled | unix.PerfBitExcludeKernel}
	t.make(call{name: "perf_event_open", do: opened(unix.SYS_PERF_EVENT_OPEN, at(attr), 0, bad, bad, 0), twin: sys(unix.SYS_PERF_EVENT_OPEN)})
	return t.verdict()
}

func userFaults(mission) verdict {
	var t tally
	const userModeOnly = 1
	t.make(
		call{name: "userfaultfd", do: opened(unix.SYS_USERFAULTFD, userModeOnly), twin: sys(unix.SYS_USERFAULTFD, 1<<20|userModeOnly)},
		call{name: "/dev/userfaultfd", do: func() error { return openFile("/dev/userfaultfd") }},
	)
	return t.verdict()
}

func openFile(name string) error {
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func useKeyrings(mission) verdict {
	var t tally
	const processKeyring = ^uintptr(1) // KEY_SPEC_PROCESS_KEYRING, which ends with the process
	kind, name := cstring("user"), cstring("cove-escape")
	t.make(
		call{name: "add_key", do: sys(unix.SYS_ADD_KEY, kind, name, cstring("x"), 1, processKeyring), twin: sys(unix.SYS_ADD_KEY)},
		call{name: "keyctl", do: sys(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, processKeyring, 1), twin: sys(unix.SYS_KEYCTL, 1<<20)},
		call{name: "request_key", do: unknownKey(sys(unix.SYS_REQUEST_KEY, kind, name, 0, processKeyring)), twin: sys(unix.SYS_REQUEST_KEY)},
	)
	return t.verdict()
}

// unknownKey is no refusal: the keyrings were searched.
func unknownKey(do func() error) func() error {
	return func() error {
		if err := do(); !errors.Is(err, unix.ENOKEY) {
			return err
		}
		return nil
	}
}

// permitted makes a call whose arguments are wrong: whoever may make it is told
// so, and everybody else that he may not.
func permitted(do func() error) func() error {
	return func() error {
		if err := do(); errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSYS) {
			return err
		}
		return nil
	}
}

func reachMachine(mission) verdict {
	var t tally
	name := cstring("/nonexistent/" + Name)
	t.make(
		call{name: "init_module", do: permitted(sys(unix.SYS_INIT_MODULE, 0, 0, 0))},
		call{name: "delete_module", do: permitted(sys(unix.SYS_DELETE_MODULE, name, 0))},
		call{name: "reboot", do: permitted(sys(unix.SYS_REBOOT, 0, 0, 0))}, // without the magic numbers it only asks
		call{name: "swapoff", do: permitted(sys(unix.SYS_SWAPOFF, name))},
		call{name: "acct", do: permitted(sys(unix.SYS_ACCT, name))},
		call{name: "syslog", do: permitted(sys(unix.SYS_SYSLOG, 3, 0, 0))},
		call{name: "sethostname", do: permitted(sys(unix.SYS_SETHOSTNAME, 0, bad))},
		call{name: "settimeofday", do: func() error { return setClock() }},
	)
	t.make(machineCalls()...)
	return t.verdict()
}

// setClock asks for the time zone that is in force: nothing changes.
func setClock() error {
	var t unix.Timex
	t.Modes = unix.ADJ_TICK
	t.Tick = 10_000 // the usual length of a tick
	_, err := unix.ClockAdjtime(unix.CLOCK_REALTIME, &t)
	return err
}
