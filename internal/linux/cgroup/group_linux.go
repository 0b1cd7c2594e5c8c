package cgroup

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Group is a set of processes: a directory of one name in each hierarchy that
// the manager uses. Methods are safe for concurrent use.
type Group struct {
	name  string
	homes []home // where dir is the group's own directory

	mu sync.Mutex
	fd int // guarded by mu; of the directory in version 2, or -1
}

// Create makes an empty group without limits. A name that is taken is
// [os.ErrExist]; with any error nothing is left.
func (m *Manager) Create(name string) (*Group, error) {
	if !validName(name) {
		return nil, fmt.Errorf("control group: %q is no name", name)
	}
	g := m.group(name)
	if first := m.first.Load(); first != nil && *first == name && m.first.CompareAndSwap(first, nil) {
		return g, nil
	}
	for i, h := range g.homes {
		if err := os.Mkdir(h.dir, 0o755); err != nil { //nolint:gosec // groups are no secret
			for _, made := range g.homes[:i] {
				err = errors.Join(err, remove(made.dir))
			}
			return nil, fmt.Errorf("control group %s: %w", name, err)
		}
	}
	return g, nil
}

// Group returns a group that exists, also if only a part of it was made or is
// left; [os.ErrNotExist] if nothing is.
func (m *Manager) Group(name string) (*Group, error) {
	if !validName(name) {
		return nil, fmt.Errorf("control group: %q is no name", name)
	}
	g := m.group(name)
	if !slices.ContainsFunc(g.homes, func(h home) bool { return exists(h.dir, "") }) {
		return nil, fmt.Errorf("control group %s: %w", name, os.ErrNotExist)
	}
	return g, nil
}

func (m *Manager) group(name string) *Group {
	g := &Group{name: name, fd: -1}
	for _, h := range m.homes {
		dir := h.group(name)
		g.homes = append(g.homes, home{hierarchy: h.hierarchy, dir: dir, sample: dir})
	}
	return g
}

// List returns the names of all groups of this manager, and of others with its
// name, complete or not.
func (m *Manager) List() ([]string, error) {
	var names []string
	for _, h := range m.homes {
		entries, err := os.ReadDir(h.dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("control groups: %w", err)
		}
		for _, e := range entries {
			if name, ours := strings.CutPrefix(e.Name(), h.prefix); ours && e.IsDir() && (h.prefix == "" || name != selfName) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Name returns the name of the group.
func (g *Group) Name() string { return g.name }

// home returns where a controller of the group is, or nil.
func (g *Group) home(controller string) *home {
	for i := range g.homes {
		if g.homes[i].has(controller) {
			return &g.homes[i]
		}
	}
	return nil
}

// home2 returns the group's directory in version 2, or nil.
func (g *Group) home2() *home {
	for i := range g.homes {
		if g.homes[i].version == 2 {
			return &g.homes[i]
		}
	}
	return nil
}

// FD returns a descriptor of the group in version 2, for starting a process
// right in it (CLONE_INTO_CGROUP, Linux 5.7); the process needs [Group.Join]
// then. It is false where there is no version 2. The descriptor is open until
// Remove.
func (g *Group) FD() (fd int, ok bool) {
	h := g.home2()
	if h == nil {
		return -1, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fd < 0 {
		fd, err := unix.Open(h.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, false
		}
		g.fd = fd
	}
	return g.fd, true
}

// Close lets go of the descriptor of [Group.FD]. The group stays.
func (g *Group) Close() { g.closeFD() }

func (g *Group) closeFD() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fd >= 0 {
		_ = unix.Close(g.fd)
		g.fd = -1
	}
}

// Tasks opens, in each directory of version 1, the file by which a process of
// one thread puts itself into the group: it writes 0 there. That takes
// microseconds where Add takes milliseconds, since the kernel need not wait for
// anybody else. The caller closes the files.
func (g *Group) Tasks() ([]*os.File, error) {
	var files []*os.File
	for _, h := range g.homes {
		if h.version == 2 {
			continue
		}
		fd, err := control(h.dir, "tasks", unix.O_WRONLY)
		if err != nil {
			for _, f := range files {
				_ = f.Close()
			}
			return nil, fmt.Errorf("control group %s: %w", g.name, err)
		}
		files = append(files, os.NewFile(uintptr(fd), "tasks"))
	}
	return files, nil
}

// Add moves a process, with all its threads, into the group. Children that it
// has already stay where they are.
func (g *Group) Add(pid int) error { return g.add(pid, g.homes) }

// Join completes what starting a process with [Group.FD] began: it moves the
// process into the group's directories of version 1. Where there are none, it
// does nothing.
func (g *Group) Join(pid int) error {
	return g.add(pid, slices.DeleteFunc(slices.Clone(g.homes), func(h home) bool { return h.version == 2 }))
}

func (g *Group) add(pid int, homes []home) error {
	if pid <= 0 {
		return fmt.Errorf("control group %s: no process %d", g.name, pid) // 0 would be ourselves
	}
	for _, h := range homes {
		if err := write(h.dir, "cgroup.procs", strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("control group %s: add process %d: %w", g.name, pid, err)
		}
	}
	return nil
}

// Empty reports whether no process is in the group. A group that was removed is
// empty.
func (g *Group) Empty() (bool, error) {
	pids, err := g.processes()
	return len(pids) == 0, err
}

// processes returns the processes in any directory of the group. One that this
// pid namespace does not show is 0.
func (g *Group) processes() ([]int, error) {
	var pids []int
	for _, h := range g.homes {
		text, err := read(h.dir, "cgroup.procs")
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("control group %s: %w", g.name, err)
		}
		for field := range strings.FieldsSeq(text) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return nil, fmt.Errorf("control group %s: %w", g.name, err)
			}
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}
