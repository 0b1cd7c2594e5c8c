//go:build linux

package fence_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/provider/local/fence"
)

// TestEntryOrder: rights go in the order in which they are needed, and none is left.
func TestEntryOrder(t *testing.T) {
	plan := &fence.Plan{
		Inside: 1000, Become: true, Network: true, Groups: true, Landlock: true, Filter: []byte{1, 2, 3, 4, 5, 6, 7, 8},
		Limits: []fence.Limit{{Resource: unix.RLIMIT_CORE, Most: 1}},
	}
	e := plan.Entry(fence.EntryFiles{Process: 3, Ruleset: 4, Group: -1, Tasks: []int{5, 6}}, fence.Rlimit{Resource: unix.RLIMIT_NPROC, Soft: 9, Hard: 9})
	var names []string
	for _, c := range e.Calls {
		names = append(names, c.Name)
	}
	want := []string{
		"enter the control group", "leave the groups", "enter the namespaces", "become the group", "become the user", "own the process", "limit a resource",
		"secure the bits", "bound the capabilities", "lower the capabilities", "drop the capabilities", "gain nothing by exec", "restrict by landlock", "enter /",
		"unblock signals",
	}
	if d := cmp.Diff(want, slices.Compact(names)); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	if len(e.Last) != 1 || e.Last[0].Number != unix.SYS_SECCOMP || !slices.Equal(e.Last[0].Args[2].Filter, plan.Filter) {
		t.Errorf("the last is %+v", e.Last)
	}
	for _, c := range e.Calls {
		switch c.Name {
		case "enter the namespaces":
			all := uint64(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP)
			if c.Args[1].Value != all || *c.Args[0].File != 3 {
				t.Errorf("%+v", c)
			}
		case "leave the groups", "become the user", "become the group", "drop the capabilities", "gain nothing by exec", "restrict by landlock":
			if len(c.Allowed) > 0 {
				t.Errorf("%s may fail", c.Name)
			}
		}
	}
}

// TestEntryOfAUser: an ordinary user cannot leave his groups, as in every sandbox of
// his, and what a plan does not have is not entered.
func TestEntryOfAUser(t *testing.T) {
	e := (&fence.Plan{}).Entry(fence.EntryFiles{Process: 3, Ruleset: -1, Group: -1})
	for _, c := range e.Calls {
		switch c.Name {
		case "leave the groups":
			if !slices.Equal(c.Allowed, []int{int(unix.EPERM)}) {
				t.Errorf("%+v", c)
			}
		case "enter the namespaces":
			if c.Args[1].Value&(unix.CLONE_NEWNET|unix.CLONE_NEWCGROUP) != 0 {
				t.Errorf("%+v", c)
			}
		case "restrict by landlock", "enter the control group":
			t.Errorf("there is %s", c.Name)
		}
	}
	if e.Last != nil {
		t.Errorf("the last is %+v", e.Last)
	}
	calls := map[string]int{}
	for _, c := range fence.Humble() {
		calls[c.Name]++
	}
	if d := cmp.Diff(map[string]int{"drop capabilities": 1, "gain nothing by exec": 1, "hear a signal again": 59}, calls); d != "" {
		t.Errorf("a nest keeps what it has (-want +got):\n%s", d)
	}
}
