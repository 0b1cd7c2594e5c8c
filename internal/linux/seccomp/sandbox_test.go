package seccomp_test

import (
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
)

// high has bits that the kernel does not look at.
const high = 0xdeadbeef << 32

func TestSandboxArguments(t *testing.T) {
	prog, err := seccomp.Sandbox().Compile()
	if err != nil {
		t.Fatal(err)
	}
	ok, eperm := seccomp.Allow, seccomp.Fail(unix.EPERM)
	family, protocol := seccomp.Fail(unix.EAFNOSUPPORT), seccomp.Fail(unix.EPROTONOSUPPORT)
	pretend, nomem, noopt := seccomp.Succeed, seccomp.Fail(unix.ENOMEM), seccomp.Fail(unix.ENOPROTOOPT)
	list, large := seccomp.Fail(unix.EOPNOTSUPP), seccomp.Fail(unix.E2BIG)
	const vfork = unix.CLONE_VM | unix.CLONE_VFORK | uint64(unix.SIGCHLD)
	for _, c := range []struct {
		name string
		want seccomp.Action
		args []uint64
	}{
		{"clone", ok, []uint64{uint64(unix.SIGCHLD)}},
		{"clone", ok, []uint64{vfork}},
		{"clone", ok, []uint64{0x3d0f00 | high}},
		{"clone", eperm, []uint64{unix.CLONE_FILES | uint64(unix.SIGCHLD)}},
		{"clone", eperm, []uint64{unix.CLONE_FILES | vfork}},
		{"clone", eperm, []uint64{unix.CLONE_NEWUSER | vfork}},
		{"clone", eperm, []uint64{unix.CLONE_NEWUSER | high}},
		{"clone", eperm, []uint64{unix.CLONE_NEWNS}},
		{"clone", eperm, []uint64{unix.CLONE_NEWCGROUP}},
		{"clone", eperm, []uint64{unix.CLONE_NEWUTS}},
		{"clone", eperm, []uint64{unix.CLONE_NEWIPC}},
		{"clone", eperm, []uint64{unix.CLONE_NEWPID}},
		{"clone", eperm, []uint64{unix.CLONE_NEWNET}},
		{"clone", eperm, []uint64{unix.CLONE_PARENT | uint64(unix.SIGCHLD)}},
		{"clone3", seccomp.Fail(unix.ENOSYS), nil},
		{"prlimit64", ok, []uint64{0, unix.RLIMIT_NOFILE, 1}},
		{"prlimit64", ok, []uint64{high, unix.RLIMIT_NOFILE, 1}},
		{"prlimit64", eperm, []uint64{1, unix.RLIMIT_NOFILE, 0}},
		{"prlimit64", ok, []uint64{0, unix.RLIMIT_CORE, 0, 1}},
		{"prlimit64", pretend, []uint64{0, unix.RLIMIT_CORE, 1}},
		{"prlimit64", pretend, []uint64{0, unix.RLIMIT_CORE | high, 1 << 32}},
		{"prlimit64", eperm, []uint64{0, unix.RLIMIT_CORE, 1, 1}},
		{"prlimit64", eperm, []uint64{0, unix.RLIMIT_CORE, 1 << 32, 1 << 32}},
		{"prlimit64", eperm, []uint64{1, unix.RLIMIT_CORE, 1}},
		{"setrlimit", pretend, []uint64{unix.RLIMIT_CORE, 1}},
		{"setrlimit", pretend, []uint64{unix.RLIMIT_CORE | high, 1}},
		{"setrlimit", ok, []uint64{unix.RLIMIT_NOFILE, 1}},
		{"mmap", ok, []uint64{0, 4096, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}},
		{"mmap", nomem, []uint64{0, 4096, 3, unix.MAP_PRIVATE | unix.MAP_HUGETLB}},
		{"memfd_create", ok, []uint64{1, unix.MFD_CLOEXEC}},
		{"memfd_create", nomem, []uint64{1, unix.MFD_HUGETLB | high}},
		{"shmget", ok, []uint64{0, 1, 0o666}},
		{"shmget", nomem, []uint64{0, 1, 0o4666}},
		{"fcntl", ok, []uint64{0, unix.F_SETLK}},
		{"fcntl", seccomp.Fail(unix.EINVAL), []uint64{0, unix.F_OFD_SETLK | high}},
		{"fcntl", seccomp.Fail(unix.EINVAL), []uint64{0, unix.F_OFD_GETLK}},
		{"setsockopt", ok, []uint64{0, unix.SOL_SOCKET, unix.SO_REUSEADDR}},
		{"setsockopt", ok, []uint64{0, unix.IPPROTO_TCP, unix.TCP_NODELAY}},
		{"setsockopt", ok, []uint64{0, unix.IPPROTO_IP, unix.TCP_MD5SIG}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_TCP | high, unix.TCP_MD5SIG | high}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_TCP, unix.TCP_MD5SIG_EXT}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_TCP, unix.TCP_ULP}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_TCP, unix.TCP_REPAIR}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_TCP, 38}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_TCP, 42}},
		{"setsockopt", noopt, []uint64{0, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER}},
		{"setsockopt", noopt, []uint64{0, unix.SOL_SOCKET, unix.SO_ATTACH_BPF}},
		{"setsockopt", noopt, []uint64{0, unix.SOL_SOCKET | high, unix.SO_ATTACH_REUSEPORT_CBPF}},
		{"setsockopt", noopt, []uint64{0, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_EBPF}},
		{"setsockopt", ok, []uint64{0, unix.IPPROTO_IP, unix.IP_TTL}},
		{"setsockopt", ok, []uint64{0, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY}},
		{"setsockopt", ok, []uint64{0, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_IP | high, unix.IP_ADD_SOURCE_MEMBERSHIP | high}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_IP, unix.IP_MSFILTER}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_IP, unix.MCAST_JOIN_GROUP}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_IP, unix.MCAST_JOIN_SOURCE_GROUP}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_IP, unix.MCAST_MSFILTER}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_IPV6 | high, unix.IPV6_2292PKTOPTIONS | high}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_IPV6, unix.IPV6_JOIN_ANYCAST}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_IPV6, 32}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_IPV6, unix.IPV6_RTHDR}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_IPV6, unix.MCAST_JOIN_GROUP}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_IPV6, unix.MCAST_JOIN_SOURCE_GROUP}},
		{"setsockopt", noopt, []uint64{0, unix.IPPROTO_IPV6, unix.MCAST_MSFILTER}},
		{"setsockopt", noopt, []uint64{0, unix.SOL_SOCKET, unix.SO_RCVLOWAT | high}},
		{"setsockopt", pretend, []uint64{0, unix.SOL_SOCKET, unix.SO_RCVBUF}},
		{"setsockopt", pretend, []uint64{0, unix.SOL_SOCKET | high, unix.SO_RCVBUFFORCE | high}},
		{"setsockopt", ok, []uint64{0, unix.SOL_SOCKET, unix.SO_SNDBUF}},
		{"setxattrat", seccomp.Fail(unix.ENOSYS), nil},
		{"setxattr", ok, []uint64{1, 1, 1, 0}},
		{"setxattr", ok, []uint64{1, 1, 1, 20}},
		{"setxattr", list, []uint64{1, 1, 1, 28}},
		{"lsetxattr", ok, []uint64{1, 1, 1, 29}},
		{"lsetxattr", list, []uint64{1, 1, 1, 36}},
		{"fsetxattr", list, []uint64{1, 1, 1, 508}},
		{"fsetxattr", ok, []uint64{1, 1, 1, 512}},
		{"setxattr", large, []uint64{1, 1, 1, 513}},
		{"setxattr", large, []uint64{1, 1, 1, 65_532}},
		{"setxattr", large, []uint64{1, 1, 1, 1<<32 | 8}},
		{"ioctl", ok, []uint64{0, unix.TCGETS}},
		{"ioctl", ok, []uint64{0, unix.TIOCSCTTY}},
		{"ioctl", eperm, []uint64{0, unix.TIOCSTI}},
		{"ioctl", eperm, []uint64{0, unix.TIOCSTI | high}},
		{"ioctl", eperm, []uint64{0, unix.TIOCLINUX | 1<<32}},
		{"ioctl", eperm, []uint64{0, unix.TIOCSETD}},
		{"socket", ok, []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET}},
		{"socket", ok, []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK}},
		{"socket", ok, []uint64{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP}},
		{"socket", protocol, []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}},
		{"socket", protocol, []uint64{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}},
		{"socket", eperm, []uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP}},
		{"socket", eperm, []uint64{unix.AF_INET6 | high, unix.SOCK_RAW | high, 0}},
		{"socket", family, []uint64{unix.AF_NETLINK, unix.SOCK_RAW}},
		{"socket", family, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM}},
		{"socket", family, []uint64{unix.AF_ALG, unix.SOCK_SEQPACKET}},
		{"socket", family, []uint64{unix.AF_PACKET, unix.SOCK_DGRAM}},
		{"socket", family, []uint64{unix.AF_XDP, unix.SOCK_RAW}},
		{"socketpair", ok, []uint64{unix.AF_UNIX, unix.SOCK_STREAM}},
		{"socketpair", family, []uint64{unix.AF_TIPC, unix.SOCK_STREAM}},
		{"prctl", ok, []uint64{unix.PR_SET_NAME}},
		{"prctl", ok, []uint64{unix.PR_SET_CHILD_SUBREAPER, 1}},
		{"prctl", eperm, []uint64{unix.PR_SET_CHILD_SUBREAPER, 0}},
		{"prctl", eperm, []uint64{unix.PR_SET_CHILD_SUBREAPER, high}},
		{"prctl", eperm, []uint64{unix.PR_SET_MM}},
		{"prctl", eperm, []uint64{unix.PR_SET_PTRACER}},
		{"seccomp", ok, []uint64{unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC}},
		{"seccomp", eperm, []uint64{unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER}},
		{"personality", ok, []uint64{0xffffffff}},
		{"personality", ok, []uint64{0x40000}},
		{"personality", eperm, []uint64{0x400000}},
		{"mknodat", ok, []uint64{0, 0, unix.S_IFIFO | 0o644}},
		{"mknodat", ok, []uint64{0, 0, 0o644}},
		{"mknodat", eperm, []uint64{0, 0, unix.S_IFCHR | 0o666}},
		{"mknodat", eperm, []uint64{0, 0, unix.S_IFBLK | 0o666 | high}},
		{"mknod", eperm, []uint64{0, unix.S_IFCHR | 0o666}},
		{"mknod", ok, []uint64{0, unix.S_IFSOCK}},
	} {
		n, known := seccomp.Number(c.name)
		if !known {
			continue
		}
		if got, _, err := answer(prog, here, n, c.args...); err != nil || got != c.want {
			t.Errorf("%s%x: %#x %v, want %#x", c.name, c.args, got, err, c.want)
		}
	}
}

// refused are the calls that no argument makes acceptable.
var refused = map[syscall.Errno][]string{
	unix.EPERM: {
		"acct", "add_key", "adjtimex", "bpf", "chroot", "clock_adjtime", "clock_settime", "delete_module", "fanotify_init",
		"fanotify_mark", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick", "init_module", "ioperm", "iopl", "kcmp",
		"kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "modify_ldt", "mount", "mount_setattr", "move_mount",
		"name_to_handle_at", "nfsservctl", "open_by_handle_at", "open_tree", "open_tree_attr", "perf_event_open",
		"pidfd_getfd", "pivot_root", "process_madvise", "process_mrelease", "process_vm_readv", "process_vm_writev",
		"ptrace", "quotactl", "quotactl_fd", "reboot", "remap_file_pages", "request_key", "setdomainname", "sethostname",
		"setns", "settimeofday", "swapoff", "swapon", "sysfs", "syslog", "umount2", "unshare", "uselib", "userfaultfd",
		"ustat", "vhangup",
	},
	unix.ENOSYS: {
		"clone3", "io_setup", "io_submit", "io_uring_enter", "io_uring_register", "io_uring_setup", "mbind", "get_mempolicy", "set_mempolicy",
		"move_pages", "migrate_pages", "memfd_secret", "setxattrat", "statmount",
	},
}

// TestSandboxRefuses makes the calls for real: the answers must be the filter's
// and not those of a kernel that looked at the arguments.
func TestSandboxRefuses(t *testing.T) {
	linuxtest.Need(t, seccomp.Probe())
	var all []attempt
	for errno, names := range refused {
		for _, name := range names {
			all = append(all, attempt{Name: name, Want: errno})
		}
	}
	all = append(
		all,
		attempt{"clone", [6]uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, unix.EPERM},
		attempt{"ioctl", [6]uint64{0, unix.TIOCSTI | high}, unix.EPERM},
		attempt{"ioctl", [6]uint64{^uint64(0), unix.TCGETS}, unix.EBADF},
		attempt{"socket", [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW}, unix.EAFNOSUPPORT},
		attempt{"socket", [6]uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, unix.EAFNOSUPPORT},
		attempt{"socket", [6]uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, unix.EPERM},
		attempt{"mknodat", [6]uint64{0, 0, unix.S_IFCHR}, unix.EPERM},
		attempt{"setsockopt", [6]uint64{^uint64(0), unix.IPPROTO_TCP, unix.TCP_MD5SIG}, unix.ENOPROTOOPT},
		attempt{"setsockopt", [6]uint64{^uint64(0), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER}, unix.ENOPROTOOPT},
		attempt{"setsockopt", [6]uint64{^uint64(0), unix.IPPROTO_IPV6, unix.IPV6_2292PKTOPTIONS}, unix.ENOPROTOOPT},
		attempt{"setsockopt", [6]uint64{^uint64(0), unix.SOL_SOCKET, unix.SO_RCVBUF}, 0}, // which the kernel would answer by EBADF
		attempt{"fsetxattr", [6]uint64{^uint64(0), 0, 0, 28}, unix.EOPNOTSUPP},
		attempt{"fsetxattr", [6]uint64{^uint64(0), 0, 0, 513}, unix.E2BIG},
		attempt{"fcntl", [6]uint64{^uint64(0), unix.F_OFD_SETLK}, unix.EINVAL},
		attempt{"mmap", [6]uint64{0, 2 << 20, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_HUGETLB, ^uint64(0)}, unix.ENOMEM},
		attempt{"setrlimit", [6]uint64{unix.RLIMIT_CORE, 0}, 0}, // which the kernel would answer by EFAULT
		attempt{"prlimit64", [6]uint64{0, unix.RLIMIT_CORE, 1, 0}, 0},
		attempt{"getpid", [6]uint64{}, 0},
	)
	try(t, all)
}

// obsolete are the calls that kernels have no more, or only numbers of.
var obsolete = []string{
	"_sysctl", "afs_syscall", "create_module", "epoll_ctl_old", "epoll_wait_old", "get_kernel_syms", "get_thread_area",
	"getpmsg", "putpmsg", "query_module", "security", "set_thread_area", "tuxcall", "vserver",
}

// TestSandboxDecidesAboutAll fails when the table grows: a new call is allowed
// or refused by somebody who thought about it.
func TestSandboxDecidesAboutAll(t *testing.T) {
	named := slices.Concat(obsolete, refused[unix.EPERM])
	for _, r := range seccomp.Sandbox().Rules {
		named = append(named, r.Calls...)
	}
	slices.Sort(named)
	for _, name := range seccomp.CallNames() {
		if _, ok := slices.BinarySearch(named, name); !ok {
			t.Errorf("nobody has decided about %s", name)
		}
	}
	for _, names := range refused {
		for _, r := range seccomp.Sandbox().Rules {
			for _, name := range names {
				if r.Else == seccomp.Allow && slices.Contains(r.Calls, name) {
					t.Errorf("%s is allowed", name)
				}
			}
		}
	}
}

// TestLast: a program that is the last refuses filters, and answers all else as before.
func TestLast(t *testing.T) {
	prog, err := seccomp.Sandbox().Compile()
	if err != nil {
		t.Fatal(err)
	}
	last := seccomp.Last(prog)
	for _, c := range []struct {
		number uint32
		args   []uint64
		own    bool
	}{
		{unix.SYS_SECCOMP, []uint64{unix.SECCOMP_SET_MODE_FILTER}, true},
		{unix.SYS_SECCOMP, []uint64{unix.SECCOMP_SET_MODE_FILTER | high, unix.SECCOMP_FILTER_FLAG_TSYNC}, true},
		{unix.SYS_SECCOMP, []uint64{unix.SECCOMP_GET_ACTION_AVAIL}, false},
		{unix.SYS_PRCTL, []uint64{unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER}, true},
		{unix.SYS_PRCTL, []uint64{unix.PR_SET_SECCOMP | high, unix.SECCOMP_MODE_FILTER}, true},
		{unix.SYS_PRCTL, []uint64{unix.PR_GET_SECCOMP}, false},
		{unix.SYS_READ, nil, false},
		{unix.SYS_MOUNT, nil, false},
	} {
		want, _, err := answer(prog, here, c.number, c.args...)
		if c.own {
			want = seccomp.Fail(unix.EINVAL)
		}
		got, _, err2 := answer(last, here, c.number, c.args...)
		if err != nil || err2 != nil || got != want {
			t.Errorf("call %d %v: %#x, want %#x (%v, %v)", c.number, c.args, got, want, err, err2)
		}
	}
}
