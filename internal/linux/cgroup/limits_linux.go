package cgroup

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"golang.org/x/sys/unix"
)

// Limits bounds a group. A zero field leaves what is set.
type Limits struct {
	Memory int64   // bytes, with swap, page cache and files in tmpfs
	CPUs   float64 // how many processors' worth of time
	PIDs   int64   // processes and threads
}

// period is how often the processor time of a group is dealt out, in
// microseconds; minQuota is the least that the kernel takes.
const (
	period   = 100_000
	minQuota = 1_000
)

// Set puts limits on the group. Each is in force when Set returns nil; a limit
// that cannot be enforced here is an error, and so is one that makes no sense.
func (g *Group) Set(l Limits) error {
	if l.Memory < 0 || l.PIDs < 0 || l.CPUs < 0 || math.IsNaN(l.CPUs) || l.CPUs > 1<<20 {
		return fmt.Errorf("control group %s: %+v are no limits", g.name, l)
	}
	for _, limit := range []struct {
		name, controller string
		set              bool
		apply            func(home) error
	}{
		{"memory", "memory", l.Memory > 0, func(h home) error { return h.setMemory(l.Memory) }},
		{"cpu", "cpu", l.CPUs > 0, func(h home) error { return h.setCPU(l.CPUs) }},
		{"pids", "pids", l.PIDs > 0, func(h home) error { return write(h.dir, "pids.max", strconv.FormatInt(l.PIDs, 10)) }},
	} {
		if !limit.set {
			continue
		}
		h := g.home(limit.controller)
		if h == nil {
			return fmt.Errorf("control group %s: the %s limit: %w", g.name, limit.name, errors.ErrUnsupported)
		}
		if err := limit.apply(*h); err != nil {
			return fmt.Errorf("control group %s: the %s limit: %w", g.name, limit.name, err)
		}
	}
	return nil
}

// setMemory bounds memory and swap together: version 1 counts their sum,
// version 2 counts them apart, and there the group gets no swap.
func (h home) setMemory(limit int64) error {
	text := strconv.FormatInt(limit, 10)
	if h.version == 2 {
		if err := write(h.dir, "memory.max", text); err != nil {
			return err
		}
		if exists(h.dir, "memory.swap.max") {
			return write(h.dir, "memory.swap.max", "0")
		}
		return nil
	}
	// Version 1 counts the buffers of sockets apart.
	const memory, sum, sockets = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.kmem.tcp.limit_in_bytes"
	if exists(h.dir, sockets) {
		if err := write(h.dir, sockets, text); err != nil {
			return err
		}
	}
	if !exists(h.dir, sum) {
		return write(h.dir, memory, text)
	}
	// The sum may never be the lower one, so it moves last on the way down and
	// first on the way up.
	err := write(h.dir, memory, text)
	if errors.Is(err, unix.EINVAL) {
		if err = write(h.dir, sum, text); err == nil {
			return write(h.dir, memory, text)
		}
	}
	if err != nil {
		return err
	}
	return write(h.dir, sum, text)
}

func (h home) setCPU(cpus float64) error {
	quota := strconv.FormatInt(max(minQuota, int64(math.Round(cpus*period))), 10)
	if h.version == 2 {
		return write(h.dir, "cpu.max", quota+" "+strconv.Itoa(period))
	}
	if err := write(h.dir, "cpu.cfs_period_us", strconv.Itoa(period)); err != nil {
		return err
	}
	return write(h.dir, "cpu.cfs_quota_us", quota)
}
