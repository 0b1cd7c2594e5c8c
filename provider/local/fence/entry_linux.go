package fence

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// Entry is the way of a process that was made outside into a sandbox: system calls,
// to be made by it in their order while it has a single thread. When the last one
// is done it is locked up like everything that is started there, and only what it
// forks from then on is in the sandbox's pid namespace. Where one is refused it must
// end at once.
type Entry struct {
	Calls []Call `json:"calls"`
	// Last are made when nothing is open any more but what the program keeps.
	Last []Call `json:"last"`
}

// Call is a system call.
type Call struct {
	Name    string `json:"name"` // for who reads what was refused
	Number  uint64 `json:"number"`
	Args    []Arg  `json:"args"`
	Allowed []int  `json:"allowed,omitempty"` // errors that do not matter
}

// Arg is one argument: a number, or what one of the others stands for.
type Arg struct {
	Value  uint64 `json:"value,omitempty"`
	File   *int   `json:"file,omitempty"`   // the descriptor that came with the entry at this place
	Bytes  []byte `json:"bytes,omitempty"`  // their address
	Filter []byte `json:"filter,omitempty"` // the address of a struct sock_fprog with these instructions
}

// EntryFiles says what comes with an entry: the first process of the sandbox, the
// ruleset, the control group of version 2, and tasks of version 1. Those that are
// not there are -1.
type EntryFiles struct {
	Process, Ruleset, Group int
	Tasks                   []int
}

// secured are the securebits of a process that gains nothing from being root or
// from changing users, and cannot change that.
const secured = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7

// capabilities are more than any kernel has; those beyond the last are EINVAL.
const capabilities = 64

// Entry returns the way into a sandbox of the plan. Limits are those of the program
// beside the plan's own.
func (p *Plan) Entry(f EntryFiles, limits ...Rlimit) Entry {
	var e Entry
	add := func(name string, number uintptr, args ...Arg) *Call {
		e.Calls = append(e.Calls, Call{Name: name, Number: uint64(number), Args: args})
		return &e.Calls[len(e.Calls)-1]
	}
	for _, t := range f.Tasks {
		add("enter the control group", unix.SYS_WRITE, file(t), text("0"), num(1))
	}
	// Only who is outside may still drop the groups of users.
	if c := add("leave the groups", unix.SYS_SETGROUPS, num(0), num(0)); !p.Become {
		c.Allowed = []int{int(unix.EPERM)}
	}
	spaces := uint64(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWPID)
	if p.Network {
		spaces |= unix.CLONE_NEWNET
	}
	if p.Groups {
		spaces |= unix.CLONE_NEWCGROUP
	}
	add("enter the namespaces", unix.SYS_SETNS, file(f.Process), num(spaces))
	inside := num(uint64(p.Inside))
	add("become the group", unix.SYS_SETRESGID, inside, inside, inside)
	add("become the user", unix.SYS_SETRESUID, inside, inside, inside)
	add("own the process", unix.SYS_PRCTL, num(unix.PR_SET_DUMPABLE), num(1), num(0), num(0), num(0))
	for _, l := range p.Limits {
		limits = append([]Rlimit{{l.Resource, l.Most, l.Most}}, limits...)
	}
	for _, l := range limits {
		add("limit a resource", unix.SYS_PRLIMIT64, num(0), num(uint64(l.Resource)), words(l.Soft, l.Hard), num(0)) //nolint:gosec // small numbers
	}
	add("secure the bits", unix.SYS_PRCTL, num(unix.PR_SET_SECUREBITS), num(secured), num(0), num(0), num(0)).Allowed = []int{int(unix.EPERM)}
	for i := range uint64(capabilities) {
		add("bound the capabilities", unix.SYS_PRCTL, num(unix.PR_CAPBSET_DROP), num(i), num(0), num(0), num(0)).Allowed = []int{int(unix.EINVAL), int(unix.EPERM)}
	}
	add("lower the capabilities", unix.SYS_PRCTL, num(unix.PR_CAP_AMBIENT), num(unix.PR_CAP_AMBIENT_CLEAR_ALL), num(0), num(0), num(0))
	add("drop the capabilities", unix.SYS_CAPSET, words(unix.LINUX_CAPABILITY_VERSION_3), words(0, 0, 0))
	add("gain nothing by exec", unix.SYS_PRCTL, num(unix.PR_SET_NO_NEW_PRIVS), num(1), num(0), num(0), num(0))
	if f.Ruleset >= 0 {
		add("restrict by landlock", unix.SYS_LANDLOCK_RESTRICT_SELF, file(f.Ruleset), num(0))
	}
	add("enter /", unix.SYS_CHDIR, text("/"))
	add("unblock signals", unix.SYS_RT_SIGPROCMASK, num(unix.SIG_SETMASK), words(0), num(0), num(8))
	if len(p.Filter) > 0 {
		e.Last = []Call{{Name: "filter system calls", Number: unix.SYS_SECCOMP, Args: []Arg{num(unix.SECCOMP_SET_MODE_FILTER), num(0), {Filter: p.Filter}}}}
	}
	return e
}

// Rlimit is a bound on a resource, RLIMIT_….
type Rlimit struct {
	Resource   int
	Soft, Hard uint64
}

func num(n uint64) Arg { return Arg{Value: n} }

func file(at int) Arg { return Arg{File: &at} }

func text(t string) Arg { return Arg{Bytes: append([]byte(t), 0)} }

func words(list ...uint64) Arg {
	var b []byte
	for _, w := range list {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	return Arg{Bytes: b}
}

// humble are the capabilities of a nest: to enter sandboxes, to become their users,
// and to lock up what it puts there.
const humble = 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_SYS_CHROOT | 1<<unix.CAP_SYS_PTRACE | 1<<unix.CAP_SYS_ADMIN

// Humble returns the calls by which a nest gives up what it does not need, and what
// its children must not have from who started it: signals that are ignored.
func Humble() []Call {
	half := uint64(humble)
	calls := []Call{
		{Name: "drop capabilities", Number: unix.SYS_CAPSET, Args: []Arg{words(unix.LINUX_CAPABILITY_VERSION_3), words(half|half<<32, 0, 0)}},
		{Name: "gain nothing by exec", Number: unix.SYS_PRCTL, Args: []Arg{num(unix.PR_SET_NO_NEW_PRIVS), num(1), num(0), num(0), num(0)}},
	}
	// Nobody changes the first two, and an interpreter has the others its own way.
	left := []unix.Signal{unix.SIGKILL, unix.SIGSTOP, unix.SIGINT, unix.SIGPIPE, unix.SIGXFSZ}
	for sig := uint64(1); sig <= lastSignal; sig++ {
		if !slices.Contains(left, unix.Signal(sig)) {
			calls = append(calls, Call{Name: "hear a signal again", Number: unix.SYS_RT_SIGACTION, Args: []Arg{num(sig), words(0, 0, 0, 0), num(0), num(signalSet)}})
		}
	}
	return calls
}

// The signals of the kernel, and the size of a set of them.
const (
	lastSignal = 64
	signalSet  = 8
)
