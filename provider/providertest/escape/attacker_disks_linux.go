package escape

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
)

// Requests to file systems that only who owns the machine may make.
const (
	freeze       = 0xc0045877
	thaw         = 0xc0045878
	discard      = 0xc0185879
	resize       = 0x40086610
	getAttribute = 0x801c581f
	setAttribute = 0x401c5820
	setFlags     = 0x40086602
	immutable    = 0x10
)

// reachBlocks looks for the device below the workspace.
func reachBlocks(mission) verdict {
	var t tally
	text, _ := content("/proc/self/mountinfo") // nothing where there is no /proc
	for line := range strings.Lines(string(text)) {
		m, ok := parseMount(line)
		if !ok || m.point != cove.WorkspacePath {
			continue
		}
		var major, minor uint32
		if _, err := fmt.Sscanf(m.device, "%d:%d", &major, &minor); err == nil {
			t.make(call{name: "mknod", do: func() error {
				defer func() { _ = os.Remove("device") }()
				return unix.Mknod("device", unix.S_IFBLK|0o600, int(unix.Mkdev(major, minor)))
			}})
		}
	}
	names, _ := filepath.Glob("/dev/loop*") // the pattern is good
	for _, name := range append(names, "/dev/loop-control", "/dev/loop0", "/dev/dm-0", "/dev/mapper/control") {
		t.make(call{name: filepath.Base(name), do: func() error { return openFile(name) }})
	}
	dir, err := unix.Open(".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return breach("open .: " + err.Error())
	}
	defer func() { _ = unix.Close(dir) }()
	flags, size, span := uint64(immutable), uint64(1)<<20, [3]uint64{1: 4096}
	t.make(
		call{name: "freeze", do: func() error {
			err := request(dir, freeze, nil)
			if err == nil {
				_ = request(dir, thaw, nil)
			}
			return err
		}},
		call{name: "discard", do: func() error { return request(dir, discard, unsafe.Pointer(&span)) }},
		call{name: "resize", do: func() error { return request(dir, resize, unsafe.Pointer(&size)) }},
		call{name: "immutable", do: func() error { return request(dir, setFlags, unsafe.Pointer(&flags)) }},
		call{name: "another project", do: func() error { return leaveProject(dir) }},
	)
	return t.verdict()
}

func request(fd int, number uintptr, arg unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), number, uintptr(arg))
	return failure(errno)
}

// leaveProject makes a directory another project's, which quotas would count.
func leaveProject(dir int) error {
	var attr struct {
		xflags, extent, extents, project, cow uint32
		pad                                   [8]byte
	}
	if err := request(dir, getAttribute, unsafe.Pointer(&attr)); err != nil {
		return err
	}
	attr.project++
	return request(dir, setAttribute, unsafe.Pointer(&attr))
}
