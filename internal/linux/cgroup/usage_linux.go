package cgroup

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Usage is what a group has used and uses. What cannot be known here is zero.
type Usage struct {
	CPU        time.Duration // of all processes that ever were in the group
	Memory     int64         // bytes now
	PeakMemory int64         // the most bytes at once
	PIDs       int64         // processes and threads now
	OOMKills   int64         // processes that died for lack of memory
}

// Usage reads the counters of the group.
func (g *Group) Usage() (Usage, error) {
	var u Usage
	var errs []error
	// Not every kernel has every counter.
	get := func(to *int64, n int64, err error) {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("control group %s: %w", g.name, err))
		}
		*to = n
	}
	if h := g.home("memory"); h != nil {
		h.memory(&u, get)
	}
	if h := g.home("pids"); h != nil {
		n, err := readInt(h.dir, "pids.current")
		get(&u.PIDs, n, err)
	} else {
		pids, err := g.processes()
		get(&u.PIDs, int64(len(pids)), err)
	}
	nanoseconds := int64(0)
	if h := g.home2(); h != nil {
		n, err := readKey(h.dir, "cpu.stat", "usage_usec")
		get(&nanoseconds, 1000*n, err)
	} else if h := g.home("cpuacct"); h != nil {
		n, err := readInt(h.dir, "cpuacct.usage")
		get(&nanoseconds, n, err)
	}
	u.CPU = time.Duration(nanoseconds)
	return u, errors.Join(errs...)
}

func (h home) memory(u *Usage, get func(*int64, int64, error)) {
	now, peak, events := "memory.current", "memory.peak", "memory.events"
	if h.version == 1 {
		now, peak, events = "memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control"
	}
	n, err := readInt(h.dir, now)
	get(&u.Memory, n, err)
	n, err = readInt(h.dir, peak)
	get(&u.PeakMemory, n, err)
	n, err = readKey(h.dir, events, "oom_kill")
	get(&u.OOMKills, n, err)
}
