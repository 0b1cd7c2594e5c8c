package measure

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Census counts what sandboxes can leave behind.
type Census struct {
	Processes   int `json:"processes"`   // of this process and those it started, zombies included
	Mounts      int `json:"mounts"`      // in all mount namespaces of those
	Cgroups     int `json:"cgroups"`     // below the directories that were asked about
	Namespaces  int `json:"namespaces"`  // held by those processes, their descriptors or a mount
	Descriptors int `json:"descriptors"` // of those processes
}

// Less returns what c has more than base has.
func (c Census) Less(base Census) Census {
	return Census{
		Processes: c.Processes - base.Processes, Mounts: c.Mounts - base.Mounts, Cgroups: c.Cgroups - base.Cgroups,
		Namespaces: c.Namespaces - base.Namespaces, Descriptors: c.Descriptors - base.Descriptors,
	}
}

// Surplus returns how much there is; what is negative does not make up for
// what is not.
func (c Census) Surplus() int {
	n := 0
	for _, v := range []int{c.Processes, c.Mounts, c.Cgroups, c.Namespaces, c.Descriptors} {
		n += max(0, v)
	}
	return n
}

// Count takes the census of this moment, with the control groups below some
// directories: those of others come and go all the time.
func Count(groups ...string) (Census, error) {
	found, err := family()
	if err != nil {
		return Census{}, err
	}
	found[process{pid: os.Getpid()}] = true
	c := Census{Processes: len(found)}
	spaces := map[string]bool{}
	for p := range found {
		if err := c.add(p, spaces); err != nil && !gone(err) && !errors.Is(err, fs.ErrPermission) {
			return c, err
		}
	}
	c.Namespaces = len(spaces)
	c.Cgroups, err = below(groups)
	return c, err
}

// add counts one process. What another user's process holds is hidden from us
// unless we are root.
func (c *Census) add(p process, spaces map[string]bool) error {
	fds, err := links(p.file("fd"))
	if err != nil {
		return err
	}
	c.Descriptors += len(fds)
	held, err := links(p.file("ns"))
	if err != nil {
		return err
	}
	mountSpace, err := os.Readlink(p.file("ns/mnt"))
	if err != nil {
		return err
	}
	if !spaces[mountSpace] {
		table, err := os.ReadFile(p.file("mountinfo"))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(table)) {
			c.Mounts++
			if root, ok := namespaceMount(line); ok {
				held = append(held, root)
			}
		}
	}
	for _, name := range append(fds, held...) {
		if isNamespace(name) {
			spaces[name] = true
		}
	}
	return nil
}

// links returns where the links of a directory point.
func links(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var targets []string
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil { // the descriptor of ReadDir has gone
			targets = append(targets, to)
		}
	}
	return targets, nil
}

// isNamespace reports a name such as net:[4026531840].
func isNamespace(name string) bool {
	kind, rest, ok := strings.Cut(name, ":[")
	_, err := strconv.ParseUint(strings.TrimSuffix(rest, "]"), 10, 64)
	return ok && err == nil && kind != "pipe" && kind != "socket" && kind != "anon_inode"
}

// namespaceMount returns the namespace that a line of mountinfo keeps alive.
func namespaceMount(line string) (string, bool) {
	f := strings.Fields(line)
	if len(f) < 5 || !strings.Contains(line, " - nsfs ") {
		return "", false
	}
	return f[3], true
}
