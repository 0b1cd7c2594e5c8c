// Package rlimit bounds what a process and what it starts may use of one
// resource at a time.
//
// A limit that is set here cannot be lifted again by a program without
// privileges. These are limits of single processes, and a second line only:
// what a whole sandbox uses must be bounded by control groups and file systems.
//
// Minimum kernel: Linux 2.6.36. There is nothing to probe.
package rlimit

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Resource is one thing that is counted.
type Resource int

// The resources that sandboxes are bounded in.
const (
	Core      Resource = unix.RLIMIT_CORE    // bytes of a core dump
	FileSize  Resource = unix.RLIMIT_FSIZE   // bytes of one file
	Files     Resource = unix.RLIMIT_NOFILE  // open descriptors
	Processes Resource = unix.RLIMIT_NPROC   // of one user in one user namespace; root is not counted
	Memory    Resource = unix.RLIMIT_AS      // bytes of address space
	Locked    Resource = unix.RLIMIT_MEMLOCK // bytes that cannot be swapped
	Stack     Resource = unix.RLIMIT_STACK   // bytes
	CPU       Resource = unix.RLIMIT_CPU     // seconds
	Queues    Resource = unix.RLIMIT_MSGQUEUE
	Signals   Resource = unix.RLIMIT_SIGPENDING
)

// Unlimited is the highest value.
const Unlimited uint64 = unix.RLIM_INFINITY

var names = map[Resource]string{
	Core: "core size", FileSize: "file size", Files: "open files", Processes: "processes", Memory: "address space",
	Locked: "locked memory", Stack: "stack size", CPU: "cpu seconds", Queues: "message queues", Signals: "pending signals",
}

// String names the resource.
func (r Resource) String() string {
	if name, ok := names[r]; ok {
		return name
	}
	return fmt.Sprintf("resource %d", int(r))
}

// Lowered says that a limit is in force, at a lower value than was asked for:
// this process is bounded so itself, and has no CAP_SYS_RESOURCE to lift that.
type Lowered struct {
	Resource  Resource
	Want, Got uint64
}

// Error says what is in force and why.
func (l *Lowered) Error() string {
	return fmt.Sprintf("limit on %s: %d is in force and not %d: the process is bounded so itself, and has no CAP_SYS_RESOURCE", l.Resource, l.Got, l.Want)
}

// Set bounds a resource for the calling process, soft and hard alike. With a
// [Lowered] a stricter limit than the wanted one holds; with any other error
// nothing has changed.
func Set(r Resource, want uint64) error {
	var now unix.Rlimit
	err := unix.Prlimit(0, int(r), nil, &now)
	if err == nil {
		err = set(r, want)
	}
	if errors.Is(err, unix.EPERM) && now.Max < want {
		if err = set(r, now.Max); err == nil {
			return &Lowered{r, want, now.Max}
		}
	}
	if err != nil {
		return fmt.Errorf("limit on %s: %w", r, err)
	}
	return nil
}

func set(r Resource, value uint64) error {
	return unix.Prlimit(0, int(r), &unix.Rlimit{Cur: value, Max: value}, nil)
}
