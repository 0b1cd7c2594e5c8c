package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cove-sandbox/cove/internal/linux"
)

// Config says where groups go.
type Config struct {
	// Name is the directory that holds all groups of this manager, in every
	// hierarchy. Managers with one name share their groups.
	Name string
	// Around names a directory around that of Name, in every hierarchy, which managers
	// with other names share; "" is none. Where groups that an earlier build made are in
	// a directory of Name that is not in it, all groups stay there.
	Around string
	// Memory bounds, in bytes, what all groups below Around have together, or those below
	// Name where nothing is around it; 0 leaves what is set.
	Memory int64
	// Only restricts the manager to version 1 or 2; 0 takes what is best.
	Only int
	// Self is a directory like /proc/self; "" is that one.
	Self string
	// First is the name of a group that is made at once, and got by
	// [Manager.Create]. Then there is no directory around the groups, which takes
	// as long to make and to remove as a group: Name is the beginning of their own
	// names. It is for who needs one group. "" is none.
	First string
}

// wanted are the controllers behind the limits.
var wanted = []string{"cpu", "memory", "pids"}

// validName reports whether a directory can have this name and be no control
// file: those have dots.
func validName(name string) bool {
	return name != "" && len(name) <= 100 && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// home is the directory in one hierarchy below which groups are made.
type home struct {
	hierarchy
	dir    string
	around string // the directory around it; "" is none
	prefix string // of the names of groups
	sample string // a directory that has the files of a group
}

// group is the directory of a group.
func (h home) group(name string) string { return filepath.Join(h.dir, h.prefix+name) }

// homeIn is the home of a manager in a directory of a hierarchy.
func (c Config) homeIn(h hierarchy, parent string) home {
	if c.First == "" {
		dir := filepath.Join(parent, c.Name)
		return home{hierarchy: h, dir: dir, sample: dir}
	}
	made := home{hierarchy: h, dir: parent, prefix: c.Name + "-"}
	made.sample = made.group(c.First)
	return made
}

// leave removes the directory of a home, and the one around it, unless groups are there.
func (h home) leave() error {
	var errs []error
	for _, dir := range []string{h.dir, h.around} {
		if dir == "" {
			continue
		}
		if err := remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) && !busy(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Manager makes and finds groups. Methods are safe for concurrent use.
type Manager struct {
	homes   []home
	support Support
	first   atomic.Pointer[string] // the name of a group that is made and nobody's yet
}

// Support says which limits can be enforced: nil, or a [linux.Missing].
type Support struct {
	Memory, CPU, PIDs error
	// Swap is an error where a memory limit does not bound swapping.
	Swap error
	// Freeze is an error where groups cannot be frozen.
	Freeze error
}

// Support returns what this manager can enforce.
func (m *Manager) Support() Support { return m.support }

// Open finds out what this process may do, and makes a directory for its groups
// in every hierarchy that it needs. The error is a [linux.Missing] where there
// is nothing to use at all.
func Open(cfg Config) (*Manager, error) { return open(cfg, wanted) }

func open(cfg Config, controllers []string) (*Manager, error) {
	for _, name := range []string{cfg.Name, cmp.Or(cfg.First, cfg.Name), cmp.Or(cfg.Around, cfg.Name)} {
		if !validName(name) {
			return nil, fmt.Errorf("control groups: %q is no name", name)
		}
	}
	self := cfg.Self
	if self == "" {
		self = "/proc/self"
	}
	all, err := hierarchies(self)
	if err != nil {
		return nil, fmt.Errorf("control groups: %w", err)
	}
	m := &Manager{}
	var refused error
	settle := func(version int, choose func(hierarchy) (home, error)) {
		for _, h := range all {
			if h.version != version || cfg.Only != 0 && cfg.Only != version {
				continue
			}
			if version == 1 && !m.needs(h, controllers) {
				continue
			}
			home, err := choose(h)
			if err != nil {
				refused = cmp.Or(refused, err)
				continue
			}
			m.homes = append(m.homes, home)
		}
	}
	// Version 2 first: what it has, the others are not needed for.
	settle(2, func(h hierarchy) (home, error) { return h.settle2(cfg, controllers) })
	settle(1, func(h hierarchy) (home, error) { return h.settle1(cfg) })
	if len(m.homes) == 0 {
		return nil, nothing(len(all) > 0, refused)
	}
	if cfg.First != "" {
		m.first.Store(&cfg.First)
	}
	m.support = m.measure(refused)
	return m, nil
}

// inherent are the files by which a version 2 group stands in for a controller
// of version 1.
var inherent = map[string]string{"freezer": "cgroup.freeze", "cpuacct": "cpu.stat"}

// needs reports whether a hierarchy of version 1 adds something.
func (m *Manager) needs(h hierarchy, controllers []string) bool {
	for _, c := range h.controllers {
		if slices.Contains(controllers, c) && m.home(c) == nil {
			return true
		}
		// A version 2 group freezes and counts time without any controller.
		if file := inherent[c]; file != "" && m.home(c) == nil && (m.home2() == nil || !exists(m.home2().sample, file)) {
			return true
		}
	}
	return false
}

// home returns where a controller is, or nil.
func (m *Manager) home(controller string) *home {
	for i := range m.homes {
		if m.homes[i].has(controller) {
			return &m.homes[i]
		}
	}
	return nil
}

// home2 returns the home in version 2, or nil.
func (m *Manager) home2() *home {
	for i := range m.homes {
		if m.homes[i].version == 2 {
			return &m.homes[i]
		}
	}
	return nil
}

func nothing(mounted bool, refused error) error {
	m := &linux.Missing{Feature: "control groups", Err: refused}
	if !mounted {
		m.Why, m.Remedy = "none are mounted", "mount cgroup2 at /sys/fs/cgroup, or give the container that cove runs in its own (docker run --cgroupns=private)"
		return m
	}
	m.Why = "this user may not make any"
	m.Remedy = "start cove as a systemd service with Delegate=yes, or by: systemd-run --user --scope -p Delegate=yes cove serve; in a container, mount /sys/fs/cgroup writable"
	return m
}

// measure looks at what the homes really offer.
func (m *Manager) measure(refused error) Support {
	limit := func(feature, controller string) error {
		if m.home(controller) != nil {
			return nil
		}
		return &linux.Missing{
			Feature: feature, Why: "no control group that we may use has the controller " + controller,
			Remedy: "delegate the controller: systemctl edit the unit or user@.service with Delegate=cpu memory pids", Err: refused,
		}
	}
	s := Support{Memory: limit("memory limit", "memory"), CPU: limit("cpu limit", "cpu"), PIDs: limit("pids limit", "pids")}
	s.Swap = m.measureSwap(s.Memory)
	if h := m.home2(); m.home("freezer") == nil && (h == nil || !exists(h.sample, inherent["freezer"])) {
		s.Freeze = &linux.Missing{Feature: "freezing", Why: "neither version 2 of Linux 5.2 nor the freezer of version 1 is there", Remedy: "use Linux 5.2 or newer, with version 2 mounted"}
	}
	return s
}

func (m *Manager) measureSwap(memory error) error {
	if memory != nil {
		return memory
	}
	h := m.home("memory")
	file := "memory.memsw.limit_in_bytes"
	if h.version == 2 {
		file = "memory.swap.max"
	}
	if exists(h.sample, file) || !hasSwap() {
		return nil
	}
	return &linux.Missing{Feature: "swap limit", Why: "the kernel does not account for swap", Remedy: "switch swap off, or start the kernel with swapaccount=1"}
}

// hasSwap reports whether the machine swaps at all.
func hasSwap() bool {
	text, err := read("/proc", "swaps")
	return err != nil || strings.Contains(text, "/")
}

func exists(dir, file string) bool {
	_, err := os.Lstat(filepath.Join(dir, file))
	return err == nil
}

// Close removes the directories that hold the groups, if no groups are left in
// them, and the first group if nobody got it.
func (m *Manager) Close() error {
	if first := m.first.Swap(nil); first != nil {
		return m.group(*first).removeNow()
	}
	if m.homes[0].prefix != "" {
		return nil
	}
	var errs []error
	for _, h := range m.homes {
		errs = append(errs, h.leave())
	}
	return errors.Join(errs...)
}

// CloseAround is Close for the last of all managers with one Around: it removes their
// directories in there, too, which they left empty when they were killed.
func (m *Manager) CloseAround() error {
	for _, h := range m.homes {
		if h.around == "" {
			continue
		}
		left, err := os.ReadDir(h.around)
		if err != nil {
			continue // it is gone
		}
		for _, entry := range left {
			if entry.IsDir() {
				_ = remove(filepath.Join(h.around, entry.Name())) // one with groups in it stays
			}
		}
	}
	return m.Close()
}

// Path is where the groups are below the top of the hierarchy that bounds memory, as it
// is mounted here; "" where nothing bounds memory.
func (m *Manager) Path() string {
	h := m.home("memory")
	if h == nil {
		return ""
	}
	below, _ := cutRoot(h.dir, h.mount)
	return below
}
