package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// namespaces are the flags of clone that make namespaces. CLONE_NEWTIME is not
// among them: in clone its bit belongs to the signal.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// ioprioProcess is IOPRIO_WHO_PROCESS.
const ioprioProcess = 1

// Values of personality(2).
const (
	personalityQuery = 0xffffffff
	perLinux32       = 0x8
	uname26          = 0x20000
	addrNoRandomize  = 0x40000
)

// harmlessPrctl are the options that change or show only the caller.
var harmlessPrctl = []uint32{
	unix.PR_SET_PDEATHSIG, unix.PR_GET_PDEATHSIG, unix.PR_GET_DUMPABLE, unix.PR_SET_DUMPABLE, unix.PR_GET_KEEPCAPS,
	unix.PR_SET_KEEPCAPS, unix.PR_GET_TIMING, unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_GET_SECCOMP,
	unix.PR_SET_SECCOMP, unix.PR_CAPBSET_READ, unix.PR_CAPBSET_DROP, unix.PR_GET_SECUREBITS, unix.PR_SET_TIMERSLACK,
	unix.PR_GET_TIMERSLACK, unix.PR_GET_CHILD_SUBREAPER, unix.PR_SET_NO_NEW_PRIVS, unix.PR_GET_NO_NEW_PRIVS,
	unix.PR_GET_TID_ADDRESS, unix.PR_SET_THP_DISABLE, unix.PR_GET_THP_DISABLE, unix.PR_CAP_AMBIENT,
	unix.PR_GET_SPECULATION_CTRL, unix.PR_SVE_SET_VL, unix.PR_SVE_GET_VL, unix.PR_PAC_RESET_KEYS,
	unix.PR_SET_TAGGED_ADDR_CTRL, unix.PR_GET_TAGGED_ADDR_CTRL, unix.PR_PAC_GET_ENABLED_KEYS, unix.PR_SET_MDWE, unix.PR_GET_MDWE, unix.PR_SET_VMA,
	unix.PR_GET_AUXV,
}

func processRules() []Rule {
	return []Rule{
		{
			// With CLONE_PARENT a program could make processes that are not below
			// it, where nobody who ends it finds them.
			// With the table of files of another process, whose locks outlive it, it
			// could hold locks that cannot be counted.
			Calls: []string{"clone"},
			Cases: []Case{{When: []Check{
				{Arg: 0, Mask: namespaces | unix.CLONE_PARENT, In: []uint32{0}},
				{Arg: 0, Mask: unix.CLONE_FILES | unix.CLONE_THREAD, In: []uint32{0, unix.CLONE_THREAD, unix.CLONE_FILES | unix.CLONE_THREAD}},
			}, Then: Allow}},
			Else: Fail(unix.EPERM),
		},
		{
			// Turns of its own. Those of the agent, which is the same user, are the
			// agent's: one that gets no turn can neither end a program nor die.
			Calls: []string{"sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"},
			Cases: []Case{{When: []Check{{Arg: 0, In: []uint32{0}}}, Then: Allow}},
			Else:  Fail(unix.EPERM),
		},
		{
			// The limit on core files is 1, with which the kernel starts no handler of
			// the host for a crash. Scripts that set it to 0, with which it would, are
			// told that they did. A call that also asks for the old limit is refused, since a
			// filter cannot give one.
			Calls: []string{"prlimit64"},
			Cases: []Case{
				{When: slices.Concat(ownCores, null(2)), Then: Allow},
				{When: slices.Concat(ownCores, null(3)), Then: Succeed},
				{When: ownCores, Then: Fail(unix.EPERM)},
				{When: ownCores[:1], Then: Allow},
			},
			Else: Fail(unix.EPERM),
		},
		{
			Calls: []string{"setrlimit"},
			Cases: []Case{{When: []Check{{Arg: 0, In: []uint32{unix.RLIMIT_CORE}}}, Then: Succeed}},
			Else:  Allow,
		},
		{
			// Argument 0 says whose number argument 1 is: a process's.
			Calls: []string{"setpriority"},
			Cases: []Case{{When: []Check{{Arg: 0, In: []uint32{unix.PRIO_PROCESS}}, {Arg: 1, In: []uint32{0}}}, Then: Allow}},
			Else:  Fail(unix.EPERM),
		},
		{
			Calls: []string{"ioprio_set"},
			Cases: []Case{{When: []Check{{Arg: 0, In: []uint32{ioprioProcess}}, {Arg: 1, In: []uint32{0}}}, Then: Allow}},
			Else:  Fail(unix.EPERM),
		},
		{
			// The agent makes each program the reaper of its own orphans, so that a
			// run can be found whole. A program must not end that.
			Calls: []string{"prctl"},
			Cases: []Case{
				{When: []Check{{Arg: 0, In: harmlessPrctl}}, Then: Allow},
				{When: []Check{{Arg: 0, In: []uint32{unix.PR_SET_CHILD_SUBREAPER}}, {Arg: 1, In: []uint32{1}}}, Then: Allow},
			},
			Else: Fail(unix.EPERM),
		},
		{
			// Programs may lock themselves up further. A listener would hand their
			// calls to another process.
			Calls: []string{"seccomp"},
			Cases: []Case{
				{When: []Check{{Arg: 1, Mask: unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, In: []uint32{0}}}, Then: Allow},
			},
			Else: Fail(unix.EPERM),
		},
		{
			// READ_IMPLIES_EXEC and the like undo what protects a process; these do not.
			Calls: []string{"personality"},
			Cases: []Case{
				{When: []Check{{Arg: 0, In: []uint32{0, perLinux32, uname26, uname26 | perLinux32, addrNoRandomize, personalityQuery}}}, Then: Allow},
			},
			Else: Fail(unix.EPERM),
		},
	}
}

// ownCores are calls about the caller's own limit on core files.
var ownCores = []Check{{Arg: 0, In: []uint32{0}}, {Arg: 1, In: []uint32{unix.RLIMIT_CORE}}}

// null holds for an address that is none.
func null(arg int) []Check {
	return []Check{{Arg: arg, In: []uint32{0}}, {Arg: arg, High: true, In: []uint32{0}}}
}

// Options of sockets that x/sys does not name, and the last of a row.
const (
	tcpRepairWindow = 29
	tcpAddKey       = 38 // TCP_AO_ADD_KEY
	tcpLastOfKeys   = 42 // TCP_AO_REPAIR
	ipv6FlowLabel   = 32 // IPV6_FLOWLABEL_MGR
)

// unchargedOptions keep memory of the kernel that no control group is charged for, or
// take over what the kernel does for a connection.
func unchargedOptions() []uint32 {
	all := []uint32{
		unix.TCP_MD5SIG, unix.TCP_MD5SIG_EXT, unix.TCP_ULP, unix.TCP_REPAIR, unix.TCP_REPAIR_QUEUE, unix.TCP_QUEUE_SEQ,
		unix.TCP_REPAIR_OPTIONS, tcpRepairWindow,
	}
	for key := uint32(tcpAddKey); key <= tcpLastOfKeys; key++ {
		all = append(all, key)
	}
	return all
}

// multicast are the options that join a group or list its senders, of IPv4 and IPv6 alike.
var multicast = []uint32{unix.MCAST_JOIN_GROUP, unix.MCAST_JOIN_SOURCE_GROUP, unix.MCAST_MSFILTER}

// unchargedOptions4 and unchargedOptions6 keep such memory by options of an address
// family: memberships of groups, headers of packets, and flow labels, of which the whole
// machine has one pool.
var (
	unchargedOptions4 = append([]uint32{unix.IP_ADD_MEMBERSHIP, unix.IP_ADD_SOURCE_MEMBERSHIP, unix.IP_MSFILTER}, multicast...)
	unchargedOptions6 = append([]uint32{
		unix.IPV6_2292PKTOPTIONS, unix.IPV6_JOIN_GROUP, unix.IPV6_JOIN_ANYCAST, ipv6FlowLabel, unix.IPV6_RTHDR,
	}, multicast...)
)

// unchargedSocketOptions give a socket a program, which takes room that the whole machine
// shares (net.core.bpf_jit_limit), or have connections that were not accepted queue as much
// as they say (SO_RCVLOWAT).
var unchargedSocketOptions = []uint32{
	unix.SO_ATTACH_FILTER, unix.SO_ATTACH_BPF, unix.SO_ATTACH_REUSEPORT_CBPF, unix.SO_ATTACH_REUSEPORT_EBPF, unix.SO_RCVLOWAT,
}

func socketRules() []Rule {
	return []Rule{
		{
			// Raw packets, netlink, vsock, alg and the rest are doors to the kernel
			// or to the machine below. Unknown families are what programs expect to
			// meet; so are unknown protocols, such as MPTCP.
			Calls: []string{"socket"},
			Cases: []Case{
				{When: []Check{{Arg: 0, In: []uint32{unix.AF_UNIX}}}, Then: Allow},
				{
					When: []Check{
						{Arg: 0, In: []uint32{unix.AF_INET, unix.AF_INET6}},
						{Arg: 1, Mask: socketTypes, In: []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM}},
						{Arg: 2, In: []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP}},
					},
					Then: Allow,
				},
				{
					When: []Check{
						{Arg: 0, In: []uint32{unix.AF_INET, unix.AF_INET6}},
						{Arg: 1, Mask: socketTypes, In: []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM}},
					},
					Then: Fail(unix.EPROTONOSUPPORT),
				},
				{When: []Check{{Arg: 0, In: []uint32{unix.AF_INET, unix.AF_INET6}}}, Then: Fail(unix.EPERM)},
			},
			Else: Fail(unix.EAFNOSUPPORT),
		},
		{
			Calls: []string{"socketpair"},
			Cases: []Case{{When: []Check{{Arg: 0, In: []uint32{unix.AF_UNIX}}}, Then: Allow}},
			Else:  Fail(unix.EAFNOSUPPORT),
		},
		{
			Calls: []string{"setsockopt"},
			Cases: []Case{
				{When: []Check{{Arg: 1, In: []uint32{unix.IPPROTO_TCP}}, {Arg: 2, In: unchargedOptions()}}, Then: Fail(unix.ENOPROTOOPT)},
				{When: []Check{{Arg: 1, In: []uint32{unix.IPPROTO_IP}}, {Arg: 2, In: unchargedOptions4}}, Then: Fail(unix.ENOPROTOOPT)},
				{When: []Check{{Arg: 1, In: []uint32{unix.IPPROTO_IPV6}}, {Arg: 2, In: unchargedOptions6}}, Then: Fail(unix.ENOPROTOOPT)},
				{When: []Check{{Arg: 1, In: []uint32{unix.SOL_SOCKET}}, {Arg: 2, In: unchargedSocketOptions}}, Then: Fail(unix.ENOPROTOOPT)},
				// What a connection that was not accepted may queue is uncharged, and the
				// bound of the namespace (netns.Narrow) does not hold for a size that a
				// program asked for. The kernel, too, says nothing when it gives less.
				{When: []Check{{Arg: 1, In: []uint32{unix.SOL_SOCKET}}, {Arg: 2, In: []uint32{unix.SO_RCVBUF, unix.SO_RCVBUFFORCE}}}, Then: Succeed},
			},
			Else: Allow,
		},
	}
}

// socketTypes is the part of a socket's type that is not flags.
const socketTypes = 0xf

// nodes answers the making of a node whose type is in argument arg: files,
// pipes and sockets, no devices.
func nodes(name string, arg int) Rule {
	return Rule{
		Calls: []string{name},
		Cases: []Case{{When: []Check{{Arg: arg, Mask: unix.S_IFMT, In: []uint32{0, unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK}}}, Then: Allow}},
		Else:  Fail(unix.EPERM),
	}
}

func fileRules() []Rule {
	return []Rule{
		nodes("mknodat", 2),
		{
			// TIOCSTI and TIOCLINUX type into terminals, TIOCSETD loads line
			// disciplines, TIOCCONS takes the console's output.
			Calls: []string{"ioctl"},
			Cases: []Case{
				{When: []Check{{Arg: 1, In: []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, unix.TIOCCONS}}}, Then: Fail(unix.EPERM)},
			},
			Else: Allow,
		},
		{
			// A lock that belongs to an open file: every process that can open the file can
			// ask which process holds one, and programs of the host are files of all sandboxes.
			Calls: []string{"fcntl"},
			Cases: []Case{{When: []Check{{Arg: 1, In: []uint32{unix.F_OFD_GETLK, unix.F_OFD_SETLK, unix.F_OFD_SETLKW}}}, Then: Fail(unix.EINVAL)}},
			Else:  Allow,
		},
		{
			// An access control list is kept in memory that no control group is charged
			// for, and its name is behind a pointer. Its length is 4 and 8 for each
			// entry; with more than two it could be one.
			Calls: []string{"setxattr", "lsetxattr", "fsetxattr"},
			Cases: []Case{
				{When: []Check{{Arg: 3, High: true, In: []uint32{0}}, {Arg: 3, In: []uint32{4, 12, 20, MaxAttribute}}}, Then: Allow},
				{When: []Check{{Arg: 3, High: true, In: []uint32{0}}, {Arg: 3, Mask: attributeBits | 7, In: []uint32{0, 1, 2, 3, 5, 6, 7}}}, Then: Allow},
				{When: []Check{{Arg: 3, High: true, In: []uint32{0}}, {Arg: 3, Mask: attributeBits, In: []uint32{0}}}, Then: Fail(unix.EOPNOTSUPP)},
			},
			Else: Fail(unix.E2BIG),
		},
	}
}

// MaxAttribute is how long the value of an extended attribute can be.
const MaxAttribute = 512

// attributeBits are those that no length below MaxAttribute has.
const attributeBits = ^uint32(MaxAttribute - 1)

// ListLength reports whether a value of so many bytes could be an access control list,
// and is refused as an attribute.
func ListLength(n int) bool { return n%8 == 4 && n > 20 }

// memoryRules refuse huge pages of the reserved kind: no control group is charged for
// them.
func memoryRules() []Rule {
	refuse := func(name string, arg int, flag uint32) Rule {
		return Rule{
			Calls: []string{name},
			Cases: []Case{{When: []Check{{Arg: arg, Mask: flag, In: []uint32{flag}}}, Then: Fail(unix.ENOMEM)}},
			Else:  Allow,
		}
	}
	return []Rule{refuse("mmap", 3, unix.MAP_HUGETLB), refuse("memfd_create", 1, unix.MFD_HUGETLB), refuse("shmget", 2, shmHugeTLB)}
}

// shmHugeTLB is SHM_HUGETLB.
const shmHugeTLB = 0o4000
