package forkexec

import (
	"strings"
	"syscall"
)

// Command is a program to start. Nothing is inherited that it does not name,
// except the limits, the identity, the namespaces and the filters of the
// thread that starts it.
type Command struct {
	Path  string   // of the executable; PATH is the caller's business
	Argv  []string // with the name first
	Env   []string
	Dir   string // "" is the caller's own
	Files []int  // become 0, 1, 2, … of the program; all others are closed

	// Group gives the program a process group of its own.
	Group bool
	// Session makes the program the leader of a session of its own, and so of a
	// group. The kernel schedules sessions as units: on a busy host without
	// control groups a new one gets its first turn later than a new group.
	Session bool
	// Terminal makes descriptor 0 the controlling terminal of that session.
	Terminal bool
	// Reaper gives the program its orphaned descendants back as children, so
	// that they can be found below it for as long as it lives. When it ends,
	// those that are left become children of the next reaper above.
	Reaper bool
	Limits []Limit
	// User is who the program is, where the caller is somebody else beside: one of
	// the caller's own ids. 0 leaves it as it is.
	User int
	// Confinement restricts the program and all that it starts; nil: nothing more
	// than the caller itself.
	Confinement *Confinement
}

// Confinement is a landlock ruleset and a system call filter. The program gets
// no_new_privs, without which neither can be put up.
type Confinement struct {
	Ruleset int // a descriptor, which stays the caller's
	Filter  []syscall.SockFilter
}

// Limit is a bound that the program cannot lift, unless it is privileged.
type Limit struct {
	Resource   int // RLIMIT_…
	Soft, Hard uint64
}

// Stage is a step of starting a program.
type Stage int

// The steps, in their order.
const (
	StageArguments   Stage = iota // the command itself is no good
	StageFork                     // no process was made
	StageConfinement              // landlock or the filter could not be put up
	StageDescriptors              // a file could not be put in its place
	StageSession                  // no session, or no group, of its own
	StageTerminal                 // descriptor 0 is no terminal, or belongs to another session
	StageReaper
	StageLimits    // a bound is above what the caller may set
	StageUser      // the caller cannot be that user
	StageDirectory // the working directory cannot be entered
	StageExec      // the program cannot be executed
)

var stageNames = [...]string{"arguments", "fork", "confinement", "descriptors", "session", "terminal", "reaper", "limits", "user", "directory", "exec"}

// String names the step.
func (s Stage) String() string {
	if s < 0 || int(s) >= len(stageNames) {
		return "unknown"
	}
	return stageNames[s]
}

// Error says which step of a start was refused, and how.
type Error struct {
	Stage Stage
	Errno syscall.Errno
}

// Error is the step and the kernel's word for it.
func (e *Error) Error() string { return "start: " + e.Stage.String() + ": " + e.Errno.Error() }

// Unwrap returns the kernel's error.
func (e *Error) Unwrap() error { return e.Errno }

// maxFilter is the kernel's bound on the instructions of one filter.
const maxFilter = 4096

// plan is a command in the form that the child can use: it may not allocate.
type plan struct {
	path, dir *byte
	argv, env []*byte
	files     []int // the child's scratch
	above     int   // the first descriptor that no file has
	group     bool
	session   bool
	terminal  bool
	reaper    bool
	limits    []Limit
	user      uintptr // 0 is the caller's
	confined  bool
	ruleset   uintptr
	filter    syscall.SockFprog

	handle int32 // written by the kernel

	// Written by the child, which shares our memory until it execs.
	stage Stage
	errno syscall.Errno
}

func (c *Command) plan() (*plan, error) {
	p := &plan{
		files:    append([]int(nil), c.Files...),
		above:    len(c.Files),
		group:    c.Group && !c.Session && !c.Terminal,
		session:  c.Session || c.Terminal,
		terminal: c.Terminal,
		reaper:   c.Reaper,
		limits:   c.Limits,
		user:     uintptr(max(c.User, 0)),
	}
	if k := c.Confinement; k != nil {
		if len(k.Filter) == 0 || len(k.Filter) > maxFilter || k.Ruleset < 0 {
			return nil, &Error{StageArguments, syscall.EINVAL}
		}
		p.confined, p.ruleset = true, uintptr(k.Ruleset)
		p.filter = syscall.SockFprog{Len: uint16(len(k.Filter)), Filter: &k.Filter[0]} //nolint:gosec // bounded
	}
	for _, fd := range c.Files {
		if fd < 0 {
			return nil, &Error{StageDescriptors, syscall.EBADF}
		}
		p.above = max(p.above, fd+1)
	}
	if len(c.Argv) == 0 || len(c.Files) == 0 && c.Terminal {
		return nil, &Error{StageArguments, syscall.EINVAL}
	}
	var ok [4]bool
	var name, dir []*byte
	name, ok[0] = pointers([]string{c.Path})
	dir, ok[1] = pointers([]string{c.Dir})
	p.argv, ok[2] = pointers(c.Argv)
	p.env, ok[3] = pointers(c.Env)
	if ok != [4]bool{true, true, true, true} {
		return nil, &Error{StageArguments, syscall.EINVAL}
	}
	p.path = name[0]
	if c.Dir != "" {
		p.dir = dir[0]
	}
	return p, nil
}

// pointers returns strings as C has them, with a nil at the end: pointers into
// one buffer, for commands with thousands of arguments. It is not ok to have a
// NUL in one.
func pointers(all []string) (list []*byte, ok bool) {
	size := 0
	for _, s := range all {
		if strings.IndexByte(s, 0) >= 0 {
			return nil, false
		}
		size += len(s) + 1
	}
	text := make([]byte, 0, size)
	list = make([]*byte, 0, len(all)+1)
	for _, s := range all {
		at := len(text)
		text = append(append(text, s...), 0)
		list = append(list, &text[at])
	}
	return append(list, nil), true
}
