package initproc

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Command is what to start, and what it is left with.
type Command struct {
	Executable int // a descriptor of it
	Argv, Env  []string
	Dir        string
	Files      []int // become 0, 1, 2, … of the program; all others are closed

	// Proc mounts the processes of the new pid namespace at /proc, to be read. The
	// program runs by then, and must not end before.
	Proc bool
	// Tasks are descriptors of files named tasks, of control groups of version
	// 1, which the process writes itself into. Moving oneself, while one is a
	// single thread, is the only way that does not wait for all processors.
	Tasks []int
	// Group is a directory of a control group of version 2, in which the process
	// is made; -1 means the caller's own.
	Group int
	// OwnGroups makes the groups it is in the top of what it sees of groups.
	OwnGroups bool

	// Inside and Outside are the user, and the group, that the process is to
	// itself and to the caller. A caller that is root can name another than
	// himself with Become, which the calling thread is then, too; for all others
	// Outside is who they are.
	Inside, Outside uint32
	Become          bool
	// ProcDir is a descriptor of a /proc that shows the caller's processes.
	ProcDir int

	Limits  []Limit
	Ruleset int // of landlock; -1 is none
	Filter  []syscall.SockFilter
}

// Limit is a bound on a resource, RLIMIT_…, that cannot be lifted again.
type Limit struct {
	Resource   int
	Soft, Hard uint64
}

// Process is what was started. The caller reaps it.
type Process struct {
	PID int // as the caller's pid namespace numbers it
	FD  int // a pidfd, which the caller closes
}

// Error says which step was refused, and how. Then no process is left.
type Error struct {
	Step  string
	Errno syscall.Errno
}

// Error is the step and the kernel's word for it.
func (e *Error) Error() string { return e.Step + ": " + e.Errno.Error() }

// Unwrap returns the kernel's error.
func (e *Error) Unwrap() error { return e.Errno }

// capabilities are more than any kernel has; those beyond the last are EINVAL.
const capabilities = 64

// secured are the securebits of a process that gains nothing from being root or
// from changing users, and cannot change that.
const secured = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7

// plan writes down what the child does.
func (c *Command) plan() (*script, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("there is no name for the program")
	}
	s := &script{}
	s.enter(c)
	s.become(c)
	s.renounce(c)
	s.place(c)
	s.lock(c)
	s.execute(c)
	return s, s.err
}

// enter goes into the control groups.
func (s *script) enter(c *Command) {
	for _, fd := range c.Tasks {
		s.call("enter the control group", unix.SYS_WRITE, uintptr(fd), s.text("0"), 1)
	}
	if c.OwnGroups {
		s.call("unshare the control groups", unix.SYS_UNSHARE, unix.CLONE_NEWCGROUP)
	}
}

// become gives the process a user in its namespace.
func (s *script) become(c *Command) {
	// Otherwise its own map would be root's file.
	s.call("own the process", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1)
	line := decimal(c.Inside) + " " + decimal(c.Outside) + " 1\n"
	s.write("deny the groups", c.ProcDir, "self/setgroups", "deny")
	s.write("map the user", c.ProcDir, "self/uid_map", line)
	s.write("map the group", c.ProcDir, "self/gid_map", line)
}

// renounce gives up privileges and the right to resources.
func (s *script) renounce(c *Command) {
	for _, l := range c.Limits {
		s.call("limit resource "+decimal(uint32(l.Resource)), unix.SYS_PRLIMIT64, 0, uintptr(l.Resource), s.words(l.Soft, l.Hard), 0) //nolint:gosec // small numbers
	}
	// Some hosts give a user namespace no privileges at all (AppArmor); who has
	// none cannot renounce them here, and needs not.
	s.call("secure the bits", unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, secured).orElse(syscall.EPERM, syscall.EPERM)
	for i := range uintptr(capabilities) {
		s.call("bound the capabilities", unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, i).orElse(syscall.EINVAL, syscall.EPERM)
	}
	s.call("lower the capabilities", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	s.call("drop the capabilities", unix.SYS_CAPSET, s.words(unix.LINUX_CAPABILITY_VERSION_3), s.words(0, 0, 0))
	s.call("gain nothing by exec", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// lock puts the walls up. Nothing but the execution comes after it.
func (s *script) lock(c *Command) {
	if c.Ruleset >= 0 {
		s.call("restrict by landlock", unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(s.ruleset), 0)
	}
	s.call("enter "+c.Dir, unix.SYS_CHDIR, s.text(c.Dir))
	s.call("unblock signals", unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, s.words(0), 0, 8)
	if len(c.Filter) > 0 {
		s.call("filter system calls", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, s.program(c.Filter))
	}
}

func (s *script) execute(c *Command) {
	s.call("execute "+c.Argv[0], unix.SYS_EXECVEAT, uintptr(s.executable), s.text(""), s.vector(c.Argv), s.vector(c.Env), unix.AT_EMPTY_PATH)
}

// place puts the files where the program wants them, and marks all others to be
// closed by the execution.
func (s *script) place(c *Command) {
	files := append([]int(nil), c.Files...)
	next := len(files)
	for _, fd := range append([]int{c.Executable, c.Ruleset}, files...) {
		next = max(next, fd+1)
	}
	aside := func(fd int) int { // out of the way of the program's files
		s.call("set a file aside", unix.SYS_DUP3, uintptr(fd), uintptr(next), unix.O_CLOEXEC)
		next++
		return next - 1
	}
	s.executable, s.ruleset = c.Executable, c.Ruleset
	if c.Executable < len(files) {
		s.executable = aside(c.Executable)
	}
	if c.Ruleset >= 0 && c.Ruleset < len(files) {
		s.ruleset = aside(c.Ruleset)
	}
	for i, fd := range files {
		if fd < i {
			files[i] = aside(fd)
		}
	}
	for i, fd := range files {
		if fd == i {
			s.call("keep a file", unix.SYS_FCNTL, uintptr(fd), unix.F_SETFD, 0)
		} else {
			s.call("place a file", unix.SYS_DUP3, uintptr(fd), uintptr(i), 0)
		}
	}
	s.call("close the other files", unix.SYS_CLOSE_RANGE, uintptr(len(files)), uintptr(^uint32(0)), unix.CLOSE_RANGE_CLOEXEC)
}
