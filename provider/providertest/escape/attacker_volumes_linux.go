package escape

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// changeVolume changes a volume by all calls that change files. What it removes
// comes last.
func changeVolume(m mission) verdict {
	var t tally
	file, dir := filepath.Join(m.Read, "f"), filepath.Join(m.Read, "dir")
	for _, in := range []string{m.Read, dir} {
		name := filepath.Join(in, "new")
		t.make(
			call{name: "create", do: func() error { return os.WriteFile(name, []byte("new"), 0o600) }},
			call{name: "mkdir", do: func() error { return os.Mkdir(name+"-dir", 0o700) }},
			call{name: "symlink", do: func() error { return os.Symlink("/", name+"-link") }},
			call{name: "mknod", do: func() error { return unix.Mkfifo(name+"-pipe", 0o600) }},
			call{name: "link", do: func() error { return os.Link(file, name+"-hard") }},
			call{name: "tmpfile", do: func() error { return closeFD(unix.Open(in, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)) }},
			call{name: "move in", do: func() error { return moveIn(name + "-moved") }},
		)
	}
	t.make(throughDescriptors(file)...)
	t.make(
		call{name: "open", do: func() error { return closeFD(unix.Open(file, unix.O_WRONLY|unix.O_CLOEXEC, 0)) }},
		call{name: "append", do: func() error { return closeFD(unix.Open(file, unix.O_RDWR|unix.O_APPEND|unix.O_CLOEXEC, 0)) }},
		call{name: "O_TRUNC", do: func() error { return closeFD(unix.Open(file, unix.O_RDONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0)) }},
		call{name: "truncate", do: func() error { return os.Truncate(file, 1) }},
		call{name: "chmod", do: func() error { return os.Chmod(file, 0o777) }},
		call{name: "chown", do: func() error { return os.Chown(file, os.Getuid(), os.Getgid()) }},
		call{name: "utimes", do: func() error { return unix.UtimesNanoAt(unix.AT_FDCWD, file, nil, 0) }},
		call{name: "setxattr", do: func() error { return unix.Setxattr(file, "user.cove", []byte("x"), 0) }},
		call{name: "rename", do: func() error { return os.Rename(file, file+"-moved") }},
		call{name: "unlink", do: func() error { return os.Remove(filepath.Join(dir, "g")) }},
		call{name: "rmdir", do: func() error { return os.Remove(dir) }},
	)
	return t.verdict()
}

func closeFD(fd int, err error) error {
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func moveIn(to string) error {
	const name = "to-be-moved"
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		return err
	}
	defer func() { _ = os.Remove(name) }()
	return os.Rename(name, to)
}

// throughDescriptors writes by way of one that was opened to read.
func throughDescriptors(file string) []call {
	with := func(flags int, do func(fd int) error) func() error {
		return func() error {
			fd, err := unix.Open(file, flags|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Close(fd) }()
			return do(fd)
		}
	}
	again := func(fd int) error {
		return closeFD(unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDWR|unix.O_CLOEXEC, 0))
	}
	return []call{
		{name: "/proc/self/fd", do: with(unix.O_RDONLY, again)},
		{name: "/proc/self/fd of a path", do: with(unix.O_PATH, again)},
		{name: "mmap", do: with(unix.O_RDONLY, func(fd int) error {
			b, err := unix.Mmap(fd, 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err == nil {
				_ = unix.Munmap(b)
			}
			return err
		})},
		{name: "mprotect", do: with(unix.O_RDONLY, func(fd int) error {
			b, err := unix.Mmap(fd, 0, 1, unix.PROT_READ, unix.MAP_SHARED)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Munmap(b) }()
			return unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE)
		})},
		{name: "fallocate", do: with(unix.O_RDONLY, func(fd int) error { return unix.Fallocate(fd, 0, 0, 4096) })},
		{name: "fchmod", do: with(unix.O_RDONLY, func(fd int) error { return unix.Fchmod(fd, 0o777) })},
		{name: "fsetxattr", do: with(unix.O_RDONLY, func(fd int) error { return unix.Fsetxattr(fd, "user.cove", []byte("x"), 0) })},
	}
}

// remountVolume takes the flag away that makes a volume read-only. What a program
// with a user namespace of its own can do, the host sees.
func remountVolume(m mission) verdict {
	var t tally
	attr := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	here := uintptr(unix.AT_FDCWD & (1<<32 - 1))
	t.make(
		call{name: "remount", do: func() error { return unix.Mount("", m.Read, "", unix.MS_REMOUNT|unix.MS_BIND, "") }, twin: sys(unix.SYS_MOUNT)},
		call{name: "remount of the file system", do: func() error { return unix.Mount("", m.Read, "", unix.MS_REMOUNT, "") }, twin: sys(unix.SYS_MOUNT)},
		call{name: "bind", do: func() error { return unix.Mount(m.Write, m.Read, "", unix.MS_BIND, "") }, twin: sys(unix.SYS_MOUNT)},
		call{name: "mount_setattr", do: sys(unix.SYS_MOUNT_SETATTR, here, cstring(m.Read), 0, at(attr), unsafe.Sizeof(attr)), twin: sys(unix.SYS_MOUNT_SETATTR, here, 0, 1<<30)},
		call{name: "open_tree", do: opened(unix.SYS_OPEN_TREE, here, cstring(m.Read), unix.OPEN_TREE_CLONE), twin: sys(unix.SYS_OPEN_TREE, here, 0, 1<<30)},
		call{name: "umount", do: func() error { return unix.Unmount(m.Read, unix.MNT_DETACH) }, twin: sys(unix.SYS_UMOUNT2, 0, 1<<20)},
	)
	const script = `mount -o remount,bind,rw "$1" || mount --bind "$1" "$1" && mount -o remount,bind,rw "$1"; echo new > "$1/new"`
	cmd := exec.Command("sh", "-c", script, "sh", m.Read) //nolint:noctx // the attack is bounded from outside
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
	}
	if err := cmd.Run(); err == nil {
		t.through("a user namespace makes it one that can be written to")
	} else {
		t.stop(errnoName(err), "in a user namespace")
	}
	return t.verdict()
}

// linkVolume takes a file out of a read-only volume by another name.
func linkVolume(m mission) verdict {
	var t tally
	file := filepath.Join(m.Read, "f")
	for _, dir := range []string{".", "/tmp", "/dev/shm", m.Write} {
		name := filepath.Join(dir, "taken")
		t.make(
			call{name: "link", do: func() error { return writeBy(os.Link(file, name), name) }},
			call{name: "move", do: func() error { return writeBy(os.Rename(filepath.Join(m.Read, "dir/g"), name), name) }},
			call{name: "exchange", do: func() error {
				if err := os.WriteFile(name, nil, 0o600); err != nil {
					return err
				}
				defer func() { _ = os.Remove(name) }()
				return unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, name, unix.RENAME_EXCHANGE)
			}},
		)
	}
	across := filepath.Join(m.Write, "across")
	t.make(call{name: "write through a link", do: func() error { return writeBy(nil, across) }})
	return t.verdict()
}

// writeBy overwrites a file and removes this name of it.
func writeBy(err error, name string) error {
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("overwritten")
	_ = f.Close()
	_ = os.Remove(name)
	return err
}

// leaveVolume follows all that leads out of volumes.
func leaveVolume(m mission) verdict {
	var t tally
	below := strings.TrimPrefix(m.Secret, "/")
	for i, to := range []string{m.Secret, up + below, "/proc/self/root" + m.Secret, "/proc/1/root" + m.Secret, "/proc/1/cwd/" + up + below} {
		name := filepath.Join(m.Write, fmt.Sprintf("made-%d", i))
		if os.Symlink(to, name) == nil {
			defer func() { _ = os.Remove(name) }()
		}
	}
	look := func(name string, text []byte, err error) {
		switch {
		case bytes.Contains(text, []byte(m.Token)):
			t.through("read a file of the host as " + name)
		case err != nil:
			t.stop(meaning(err), "")
		}
	}
	for _, dir := range []string{m.Read, m.Write} {
		names := []string{"away", "above", "root" + m.Secret, up + below, "dir/../../../../" + below, "made-0", "made-1", "made-2", "made-3", "made-4"}
		if os.Chdir(dir) == nil {
			names = append(names, "/proc/self/cwd/"+up+below)
		}
		for _, name := range names {
			if !filepath.IsAbs(name) {
				name = dir + "/" + name // the dots matter
			}
			text, err := content(name)
			look(name, text, err)
		}
		text, err := content(up + below)
		look(dir+", as .. of the working directory", text, err)
		if f, err := os.OpenFile(dir+"/away", os.O_WRONLY|os.O_TRUNC, 0); err == nil {
			_ = f.Close() // the host knows whether it was its own
		}
	}
	return t.verdict()
}

// useVolumePrograms runs programs and opens devices that lie in volumes.
func useVolumePrograms(m mission) verdict {
	var t tally
	for _, dir := range []string{m.Read, m.Write} {
		var s unix.Statfs_t
		if err := unix.Statfs(dir, &s); err != nil {
			return breach("statfs: " + err.Error())
		}
		if s.Flags&unix.ST_NOSUID == 0 && status("NoNewPrivs") != "1" {
			t.through("setuid programs work in " + dir)
		} else {
			t.stop("nosuid and no_new_privs", "setuid programs")
		}
		node := filepath.Join(dir, "node")
		t.make(call{name: "mknod", do: func() error {
			defer func() { _ = os.Remove(node) }()
			return unix.Mknod(node, unix.S_IFBLK|0o666, int(unix.Mkdev(7, 0)))
		}})
		if !m.Baited {
			continue
		}
		t.make(call{name: "a device that is there", do: func() error {
			err := openFile(filepath.Join(dir, "device"))
			if !m.Apart && (errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV)) {
				return nil // the kernel lacks it, and would have let us
			}
			return err
		}})
		out, err := exec.Command(filepath.Join(dir, "id"), "-u").Output() //nolint:noctx // it is the attack
		if got := strings.TrimSpace(string(out)); err == nil && got != strconv.Itoa(os.Getuid()) {
			t.through("a setuid program runs as user " + got)
		}
	}
	return t.verdict()
}
