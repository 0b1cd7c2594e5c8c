package cgroup

import "strings"

// OpenWanting is Open with other controllers than those behind the limits.
var OpenWanting = open

// Dirs returns the directories of the manager by what is in them.
func (m *Manager) Dirs() map[string]string { return dirs(m.homes) }

// Dirs returns the directories of the group by what is in them.
func (g *Group) Dirs() map[string]string { return dirs(g.homes) }

func dirs(homes []home) map[string]string {
	all := map[string]string{}
	for _, h := range homes {
		for _, c := range h.controllers {
			all[c] = h.dir
		}
		if h.version == 2 {
			all["v2"] = h.dir
		}
	}
	return all
}

// Hunt kills the members of a group one by one, as old kernels need it.
var Hunt = (*Group).hunt

// OwnDirs returns the groups that a process with this /proc/self is in, below
// where they are mounted.
func OwnDirs(self string) []string {
	all, _ := hierarchies(self)
	var dirs []string
	for _, h := range all {
		dirs = append(dirs, strings.TrimPrefix(h.own, h.mount))
	}
	return dirs
}
