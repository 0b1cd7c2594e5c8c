package cgroup

import (
	"path/filepath"
	"slices"
	"strings"
)

// hierarchy is one mounted tree of groups.
type hierarchy struct {
	version     int
	controllers []string // of version 1: what it was mounted with
	mount       string
	own         string // directory of the group that this process is in
}

func (h hierarchy) has(controller string) bool { return slices.Contains(h.controllers, controller) }

// hierarchies reads what is mounted, and where this process is in it, from a
// directory like /proc/self.
func hierarchies(self string) ([]hierarchy, error) {
	mounts, err := read(self, "mountinfo")
	if err != nil {
		return nil, err
	}
	membership, err := read(self, "cgroup")
	if err != nil {
		return nil, err
	}
	var all []hierarchy
	for line := range strings.Lines(mounts) {
		h, root, ok := parseMount(line)
		// A hierarchy can be mounted in several places; the first will do.
		if !ok || slices.ContainsFunc(all, func(o hierarchy) bool { return o.same(h) }) {
			continue
		}
		h.own = h.mount
		if path, ok := ownPath(membership, h); ok {
			// Where only a part is mounted, paths start above it.
			if below, ok := cutRoot(path, root); ok {
				h.own = filepath.Join(h.mount, below)
			}
		}
		all = append(all, h)
	}
	return all, nil
}

func (h hierarchy) same(o hierarchy) bool {
	return h.version == o.version && slices.Equal(h.controllers, o.controllers)
}

// parseMount reads one line of mountinfo:
// 35 31 0:32 /root /mount rw,relatime shared:7 - cgroup cgroup rw,memory
func parseMount(line string) (h hierarchy, root string, ok bool) {
	place, kind, ok := strings.Cut(line, " - ")
	if !ok || !strings.HasPrefix(kind, "cgroup") {
		return h, "", false
	}
	fields, types := strings.Fields(place), strings.Fields(kind)
	if len(fields) < 5 || len(types) < 3 {
		return h, "", false
	}
	h.mount = unescape(fields[4])
	switch types[0] {
	case "cgroup2":
		h.version = 2
	case "cgroup":
		h.version = 1
		for option := range strings.SplitSeq(types[2], ",") {
			if slices.Contains([]string{"cpu", "cpuacct", "memory", "pids", "freezer"}, option) {
				h.controllers = append(h.controllers, option)
			}
		}
		ok = len(h.controllers) > 0
	default:
		ok = false
	}
	return h, unescape(fields[3]), ok
}

// unescape undoes what the kernel does to blanks in names.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// ownPath finds the group of this process in lines like 4:cpu,cpuacct:/a/b.
func ownPath(membership string, h hierarchy) (string, bool) {
	for line := range strings.Lines(membership) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if h.version == 2 && parts[0] == "0" && parts[1] == "" {
			return parts[2], true
		}
		if h.version == 1 && slices.Contains(strings.Split(parts[1], ","), h.controllers[0]) {
			return parts[2], true
		}
	}
	return "", false
}

// cutRoot returns path as seen from root, if it is below it.
func cutRoot(path, root string) (string, bool) {
	below, ok := strings.CutPrefix(path+"/", strings.TrimSuffix(root, "/")+"/")
	return filepath.Clean("/" + below), ok && !strings.Contains(path, "/..")
}
