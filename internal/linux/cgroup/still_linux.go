package cgroup

import (
	"fmt"
	"strings"
)

// Alone reports whether at most one process is in the group. It looks at one of
// the group's directories: all processes are in each of them.
func (g *Group) Alone() (bool, error) {
	text, err := read(g.homes[0].dir, "cgroup.procs")
	if gone(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("control group %s: %w", g.name, err)
	}
	return len(strings.Fields(text)) < 2, nil
}

// Still reports whether the group is frozen, or about to be.
func (g *Group) Still() bool {
	if h := g.home2(); h != nil && exists(h.dir, "cgroup.freeze") {
		n, err := readInt(h.dir, "cgroup.freeze")
		return err == nil && n == 1
	}
	if h := g.home("freezer"); h != nil {
		state, err := read(h.dir, "freezer.state")
		return err == nil && state != "THAWED"
	}
	return false
}
