package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unlimitedMemory is how version 1 writes no limit, rounded down to pages.
const unlimitedMemory = 1 << 62

// settle1 makes the home in a hierarchy of version 1: at its top, where the next
// process finds what this one left behind, unless somebody put a limit on the
// group that we are in: then below it, so that the limit holds.
func (h hierarchy) settle1(c Config) (home, error) {
	parent := h.mount
	for dir := h.own; dir != h.mount && strings.HasPrefix(dir, h.mount); dir = filepath.Dir(dir) {
		if limited(dir) {
			parent = h.own
			break
		}
	}
	return h.found(c, parent, func(dir string) error {
		// Kernels before 5.11 count children into their parents only if told so.
		if f := "memory.use_hierarchy"; h.has("memory") && exists(dir, f) {
			if text, err := read(dir, f); err == nil && text == "0" {
				return write(dir, f, "1")
			}
		}
		return nil
	})
}

// found makes a home in parent and the directory around it, and bounds what is in there.
// ready is called with each directory that groups will be in.
func (h hierarchy) found(c Config, parent string, ready func(dir string) error) (home, error) {
	if c.First != "" {
		made := c.homeIn(h, parent)
		return made, os.Mkdir(made.sample, 0o755) //nolint:gosec // groups are no secret
	}
	around := ""
	if c.Around != "" && !busy(remove(filepath.Join(parent, c.Name))) {
		around = filepath.Join(parent, c.Around)
		parent = around
	}
	made := c.homeIn(h, parent)
	made.around = around
	for _, dir := range []string{around, made.dir} {
		if dir == "" {
			continue
		}
		err := makeDir(dir)
		if err == nil {
			err = ready(dir)
		}
		if err != nil {
			return home{}, errors.Join(err, made.leave())
		}
	}
	if err := h.bound(cmp.Or(around, made.dir), c.Memory); err != nil {
		return home{}, errors.Join(err, made.leave())
	}
	return made, nil
}

// bound bounds the memory of a directory. What is in use there by sandboxes of an earlier
// process is let be: a lower bound would end them.
func (h hierarchy) bound(dir string, most int64) error {
	if most == 0 || !h.has("memory") {
		return nil
	}
	now := "memory.current"
	if h.version == 1 {
		now = "memory.usage_in_bytes"
	}
	if used, err := readInt(dir, now); err == nil && used > most {
		most = used + used/16
	}
	return home{hierarchy: h, dir: dir}.setMemory(most)
}

func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // groups are no secret
		return err
	}
	return nil
}

// limited reports whether a group of version 1 has any limit of ours.
func limited(dir string) bool {
	if n, err := readInt(dir, "memory.limit_in_bytes"); err == nil && n < unlimitedMemory {
		return true
	}
	if n, err := readInt(dir, "cpu.cfs_quota_us"); err == nil && n > 0 {
		return true
	}
	text, err := read(dir, "pids.max")
	return err == nil && text != "max"
}

// settle2 makes the home in version 2: in the nearest group, from our own
// upward, that we may use and that hands controllers on. Where systemd put us
// into a subgroup of what it delegated (DelegateSubgroup=), ours must not hand on
// anything: it could not put the next server there while our groups live.
func (h hierarchy) settle2(c Config, controllers []string) (home, error) {
	var refused error
	if parent := filepath.Dir(h.own); h.own != h.mount && delegated(parent) {
		made, err := h.handOn(parent, c, controllers)
		if err == nil {
			return made, nil
		}
		refused = err
	}
	for parent := h.own; strings.HasPrefix(parent, h.mount); parent = filepath.Dir(parent) {
		made, err := h.handOn(parent, c, controllers)
		if err == nil {
			return made, nil
		}
		refused = cmp.Or(refused, err)
		if parent == h.mount {
			break
		}
	}
	return home{}, refused
}

// delegated reports whether systemd gave a group away, by the mark that it
// leaves on one.
func delegated(dir string) bool {
	for _, mark := range []string{"trusted.delegate", "user.delegate"} {
		var value [1]byte
		if n, err := unix.Getxattr(dir, mark, value[:]); err == nil && n == 1 && value[0] == '1' {
			return true
		}
	}
	return false
}

// handOn makes the home in parent, and has parent give it all of the controllers
// that parent has, to hand on to groups.
func (h hierarchy) handOn(parent string, c Config, controllers []string) (home, error) {
	for _, file := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
		if err := unix.Access(filepath.Join(parent, file), unix.W_OK); err != nil {
			return home{}, &os.PathError{Op: "use", Path: filepath.Join(parent, file), Err: err}
		}
	}
	have, err := read(parent, "cgroup.controllers")
	if err != nil {
		return home{}, err
	}
	var want []string
	for c := range strings.FieldsSeq(have) {
		if slices.Contains(controllers, c) {
			want = append(want, c)
		}
	}
	if err := enable(parent, want); err != nil {
		if !errors.Is(err, unix.EBUSY) || !alone(parent) {
			return home{}, err
		}
		// Only we are in the way.
		if err := moveSelf(filepath.Join(parent, c.Name+"-"+selfName)); err != nil {
			return home{}, err
		}
		if err := enable(parent, want); err != nil {
			return home{}, err
		}
	}
	h.controllers = want
	return h.found(c, parent, func(dir string) error { return enable(dir, want) })
}

// enable gives controllers to the children of a group.
func enable(dir string, controllers []string) error {
	text, err := read(dir, "cgroup.subtree_control")
	if err != nil {
		return err
	}
	var missing []string
	for _, c := range controllers {
		if !slices.Contains(strings.Fields(text), c) {
			missing = append(missing, "+"+c)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return write(dir, "cgroup.subtree_control", strings.Join(missing, " "))
}

// alone reports whether this process is the only one in a group.
func alone(dir string) bool {
	text, err := read(dir, "cgroup.procs")
	return err == nil && text == strconv.Itoa(os.Getpid())
}

// selfName is the end of the name of a leaf that holds this process.
const selfName = "self"

func moveSelf(leaf string) error {
	if err := makeDir(leaf); err != nil {
		return err
	}
	if err := write(leaf, "cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
		return errors.Join(fmt.Errorf("move into a leaf: %w", err), remove(leaf))
	}
	return nil
}
