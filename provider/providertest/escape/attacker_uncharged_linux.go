package escape

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Each list takes 64 KiB. Where nothing stops it, the attack takes a little more than
// what it must not, and stops.
const (
	listEntries = 8000
	manyLists   = 1200
)

// within is the verdict on what takes memory of the kernel. One that is the sandbox's own
// may give it; the host looks at what its own holds.
func (t *tally) within(m mission) verdict {
	if m.Apart && t.got != "" {
		return heldBy("the sandbox's own kernel, whose memory is the sandbox's: " + t.got)
	}
	return t.verdict()
}

// accessList is an access control list for the caller, many times over.
func accessList(entries int) []byte {
	const owner, user, group, mask, other, all = 0x01, 0x02, 0x04, 0x10, 0x20, 7
	b := binary.LittleEndian.AppendUint32(nil, 2)
	add := func(tag uint16, id uint32) {
		b = binary.LittleEndian.AppendUint16(b, tag)
		b = binary.LittleEndian.AppendUint16(b, all)
		b = binary.LittleEndian.AppendUint32(b, id)
	}
	add(owner, ^uint32(0))
	for range entries {
		add(user, uint32(os.Getuid()))
	}
	for _, tag := range []uint16{group, mask, other} {
		add(tag, ^uint32(0))
	}
	return b
}

// keepLists gives files access control lists, by every call that can.
func keepLists(m mission) verdict {
	var t tally
	dir, err := os.MkdirTemp(".", "lists-*")
	if err != nil {
		return breach("make a directory: " + err.Error())
	}
	const attribute = "system.posix_acl_access"
	name := cstring(attribute)
	at := func(value []byte) [3]uint64 { // struct xattr_args
		return [3]uint64{uint64(uintptr(unsafe.Pointer(&value[0]))), uint64(len(value))}
	}
	ways := map[string]func(path string, fd int, value []byte) error{
		"setxattr":  func(path string, _ int, value []byte) error { return unix.Setxattr(path, attribute, value, 0) },
		"lsetxattr": func(path string, _ int, value []byte) error { return unix.Lsetxattr(path, attribute, value, 0) },
		"fsetxattr": func(_ string, fd int, value []byte) error { return unix.Fsetxattr(fd, attribute, value, 0) },
		"setxattrat": func(path string, _ int, value []byte) error {
			args := at(value)
			here := uintptr(unix.AT_FDCWD & (1<<32 - 1))
			_, _, errno := unix.Syscall6(unix.SYS_SETXATTRAT, here, cstring(path), 0, name, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args[0])*2)
			runtime.KeepAlive(value)
			return failure(errno)
		},
		"setxattr with a length of 64 bits": func(path string, _ int, value []byte) error {
			_, _, errno := unix.Syscall6(unix.SYS_SETXATTR, cstring(path), name, uintptr(unsafe.Pointer(&value[0])), uintptr(len(value))|1<<40, 0, 0)
			return failure(errno)
		},
	}
	twin := sys(unix.SYS_FSETXATTR, bad, name, 0, 28)
	for _, entries := range []int{1, 60, listEntries} {
		value := accessList(entries)
		for way, set := range ways {
			n := 1
			if entries == listEntries {
				n = manyLists / len(ways)
			}
			t.make(call{name: fmt.Sprintf("%s of %d bytes", way, len(value)), twin: twin, do: func() error {
				for i := range n {
					path := fmt.Sprintf("%s/%s-%d-%d", dir, way[:4], entries, i)
					fd, err := unix.Open(path, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
					if err == nil {
						err = set(path, fd, value)
						_ = unix.Close(fd)
					}
					if err != nil {
						return err
					}
				}
				return nil
			}})
		}
	}
	return t.within(m)
}

// keepKeys gives sockets keys to sign what they send, and filters and other handlers
// of a connection.
func keepKeys(m mission) verdict {
	const sockets, keys = 64, 200
	var t tally
	key := func(n int) []byte { // struct tcp_md5sig
		b := make([]byte, 216)
		binary.NativeEndian.PutUint16(b, unix.AF_INET)
		b[4], b[5], b[6], b[7] = 10, 0, byte(n>>8), byte(n)
		binary.NativeEndian.PutUint16(b[130:], 16)
		return b
	}
	option := func(fd, number int, value []byte) error {
		return unix.SetsockoptString(fd, unix.IPPROTO_TCP, number, string(value))
	}
	fill := func(number int, value func(n int) []byte) func() error {
		return func() error {
			for range sockets {
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					return err
				}
				defer func() { _ = unix.Close(fd) }()
				for n := range keys {
					if err := option(fd, number, value(n)); err != nil {
						return err
					}
				}
			}
			return nil
		}
	}
	added := func(n int) []byte { // struct tcp_ao_add
		b := make([]byte, 288)
		copy(b, key(n)[:128])
		copy(b[128:], "hmac(sha1)")
		b[200], b[201], b[202], b[205] = byte(n), byte(n), 32, 16
		return b
	}
	const addKey = 38 // TCP_AO_ADD_KEY
	t.make(
		call{name: "TCP_MD5SIG", do: fill(unix.TCP_MD5SIG, key), twin: sys(unix.SYS_SETSOCKOPT, bad, unix.IPPROTO_TCP, unix.TCP_MD5SIG)},
		call{name: "TCP_AO_ADD_KEY", do: fill(addKey, added), twin: sys(unix.SYS_SETSOCKOPT, bad, unix.IPPROTO_TCP, addKey)},
		call{name: "TCP_ULP", do: fill(unix.TCP_ULP, func(int) []byte { return []byte("tls") }), twin: sys(unix.SYS_SETSOCKOPT, bad, unix.IPPROTO_TCP, unix.TCP_ULP)},
	)
	keepOptions(&t)
	return t.within(m)
}

// attachFilters gives sockets programs. One is enough to show it: thousands would
// keep others from what they need.
func attachFilters(mission) verdict {
	var t tally
	prog := allow(16)
	for name, option := range map[string]int{"SO_ATTACH_FILTER": unix.SO_ATTACH_FILTER, "SO_ATTACH_REUSEPORT_CBPF": unix.SO_ATTACH_REUSEPORT_CBPF} {
		t.make(call{name: name, twin: sys(unix.SYS_SETSOCKOPT, bad, unix.SOL_SOCKET, uintptr(option)), do: func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Close(fd) }()
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) // which the second needs
			p := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
			return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, option, &p)
		}})
	}
	return t.verdict()
}

// allow is a program of n instructions that allows everything.
func allow(n int) []unix.SockFilter {
	p := make([]unix.SockFilter, n)
	for i := range p {
		p[i] = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	}
	return p
}

// installFilters installs filters as long as the kernel takes any, over one thread
// that ends with it. That of every other thread could take as many more.
func installFilters(mission) verdict {
	const most, finest, enough = 4096, 16, 2500
	said := make(chan verdict)
	go func() {
		runtime.LockOSThread()
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			said <- breach("no_new_privs: " + err.Error())
			return
		}
		all, last := 0, syscall.Errno(0)
		for n := most; n >= finest && all <= enough; {
			prog := allow(n)
			p := unix.SockFprog{Len: uint16(n), Filter: &prog[0]}
			_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&p)))
			runtime.KeepAlive(prog)
			if errno == 0 {
				all += n
			} else {
				n, last = n/2, errno
			}
		}
		if all > enough {
			said <- breach(strconv.Itoa(all) + " instructions of filters were taken for one thread")
			return
		}
		said <- heldBy(errnoName(last) + " after " + strconv.Itoa(all) + " instructions")
	}()
	return <-said
}

// mapHugePages asks for one page; a machine without a reserve has none to give.
func mapHugePages(mission) verdict {
	const size, flag = 2 << 20, 0o4000 // SHM_HUGETLB
	var t tally
	t.make(
		call{name: "mmap", do: func() error {
			b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_HUGETLB)
			if err == nil {
				_ = unix.Munmap(b)
			}
			return err
		}, twin: sys(unix.SYS_MMAP, 0, 0, 0, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_HUGETLB, bad)},
		call{name: "memfd_create", do: opened(unix.SYS_MEMFD_CREATE, cstring("cove-escape"), unix.MFD_CLOEXEC|unix.MFD_HUGETLB), twin: sys(unix.SYS_MEMFD_CREATE, 0, unix.MFD_HUGETLB)},
		call{name: "shmget", do: func() error {
			id, err := unix.SysvShmGet(unix.IPC_PRIVATE, size, unix.IPC_CREAT|flag|0o600)
			if err == nil {
				_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
			}
			return err
		}, twin: sys(unix.SYS_SHMGET, 0, 0, flag)},
	)
	return t.verdict()
}

// lockOpenFiles locks a file of its own in the way that shows on those of others, too.
func lockOpenFiles(mission) verdict {
	var t tally
	f, err := os.CreateTemp(".", "lock-*")
	if err != nil {
		return breach("make a file: " + err.Error())
	}
	defer func() { _ = f.Close() }()
	for name, command := range map[string]int{"F_OFD_GETLK": unix.F_OFD_GETLK, "F_OFD_SETLK": unix.F_OFD_SETLK, "F_OFD_SETLKW": unix.F_OFD_SETLKW} {
		l := unix.Flock_t{Type: unix.F_WRLCK}
		t.make(call{name: name, do: func() error { return unix.FcntlFlock(f.Fd(), command, &l) }, twin: sys(unix.SYS_FCNTL, bad, uintptr(command))})
	}
	return t.verdict()
}

// tellFiles tells the host how many files this process can have open at most.
func tellFiles(mission) verdict {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return breach("getrlimit: " + err.Error())
	}
	more := unix.Rlimit{Cur: l.Max + 1, Max: l.Max + 1}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &more); err == nil {
		return breach("the limit on open files can be raised")
	}
	say(wordFact + strconv.FormatUint(l.Max, 10))
	return heldBy("the hard limit on open files: " + strconv.FormatUint(l.Max, 10))
}
