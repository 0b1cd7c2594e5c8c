package seccomp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Action is the answer to a call. The zero Action is none: a policy that leaves
// one out does not compile.
type Action uint32

// The answers beside [Fail].
const (
	Allow   Action = unix.SECCOMP_RET_ALLOW
	Kill    Action = unix.SECCOMP_RET_KILL_PROCESS // the process dies of SIGSYS
	Succeed Action = unix.SECCOMP_RET_ERRNO        // 0, without making the call; of rules only
)

// Fail answers a call with an error, without making it.
func Fail(e syscall.Errno) Action {
	return Action(unix.SECCOMP_RET_ERRNO | uint32(e)&unix.SECCOMP_RET_DATA) //nolint:gosec // error numbers have 12 bits
}

func (a Action) valid() bool {
	return a == Allow || a == Kill || a&unix.SECCOMP_RET_ACTION_FULL == unix.SECCOMP_RET_ERRNO
}

// Check holds when the low 32 bits of an argument, masked, are one of a few
// values. The high bits are looked at by a check of their own.
type Check struct {
	Arg  int    // counted from 0
	High bool   // the high 32 bits: of sizes and addresses the kernel reads all
	Mask uint32 // 0 means all bits
	In   []uint32
}

// Case is an answer for calls that pass all of its checks.
type Case struct {
	When []Check
	Then Action
}

// Rule answers the calls it names: as the first case says whose checks all
// hold, or as Else says.
type Rule struct {
	Calls []string
	Cases []Case
	Else  Action
}

// Policy is a whole filter. It is a plain value.
type Policy struct {
	Rules   []Rule
	Default Action // for a call that no rule names
	// Newer is for numbers beyond those this package knows. Programs try new
	// calls first and fall back on ENOSYS, not on EPERM.
	Newer Action
}

// call is one entry of the table of an architecture.
type call struct {
	name   string
	number uint32
}

// Number returns the number of a call on this architecture.
func Number(name string) (uint32, bool) {
	i, ok := slices.BinarySearchFunc(calls, name, func(c call, name string) int { return strings.Compare(c.name, name) })
	if !ok {
		return 0, false
	}
	return calls[i].number, true
}

// newest is the highest number in the table.
func newest() uint32 {
	n := uint32(0)
	for _, c := range calls {
		n = max(n, c.number)
	}
	return n
}

// Bounds that keep every jump of a program within the kernel's eight bits.
const (
	maxValues = 64 // of one check
	maxChecks = 4  // of one case
	maxCases  = 16 // of one rule
)

// rules returns the rule of every number that has one.
func (p Policy) rules() (map[uint32]Rule, error) {
	if !p.Default.valid() || !p.Newer.valid() || p.Default == Succeed || p.Newer == Succeed {
		return nil, errors.New("seccomp: the policy has no default, or no answer to newer calls")
	}
	byNumber := map[uint32]Rule{}
	for _, r := range p.Rules {
		if err := r.validate(); err != nil {
			return nil, fmt.Errorf("seccomp: rule for %s: %w", strings.Join(r.Calls, ", "), err)
		}
		for _, name := range r.Calls {
			n, ok := Number(name)
			if !ok {
				return nil, fmt.Errorf("seccomp: no call %q on this architecture", name)
			}
			if _, twice := byNumber[n]; twice {
				return nil, fmt.Errorf("seccomp: two rules name %q", name)
			}
			byNumber[n] = r
		}
	}
	return byNumber, nil
}

func (r Rule) validate() error {
	if !r.Else.valid() {
		return errors.New("it has no answer")
	}
	if len(r.Cases) > maxCases {
		return fmt.Errorf("it has %d cases; the most is %d", len(r.Cases), maxCases)
	}
	for _, c := range r.Cases {
		if !c.Then.valid() {
			return errors.New("a case has no answer")
		}
		if len(c.When) == 0 || len(c.When) > maxChecks {
			return fmt.Errorf("a case has %d checks; it needs 1 to %d", len(c.When), maxChecks)
		}
		for _, k := range c.When {
			if k.Arg < 0 || k.Arg > 5 {
				return fmt.Errorf("calls have no argument %d", k.Arg)
			}
			if len(k.In) == 0 || len(k.In) > maxValues {
				return fmt.Errorf("a check has %d values; it needs 1 to %d", len(k.In), maxValues)
			}
		}
	}
	return nil
}
