package seccomp

import "golang.org/x/sys/unix"

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
			Calls: []string{"clone"},
			Cases: []Case{{When: []Check{{Arg: 0, Mask: namespaces | unix.CLONE_PARENT, In: []uint32{0}}}, Then: Allow}},
			Else:  Fail(unix.EPERM),
		},
		{
			// Limits and turns of its own. Those of the agent, who is the same user,
			// are the agent's: one that gets no turn can neither end a program nor
			// die.
			Calls: []string{"prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"},
			Cases: []Case{{When: []Check{{Arg: 0, In: []uint32{0}}}, Then: Allow}},
			Else:  Fail(unix.EPERM),
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
	}
}
