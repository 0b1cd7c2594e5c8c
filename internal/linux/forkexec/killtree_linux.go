package forkexec

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
)

// Bounds on the hunt for a tree that fights back.
const (
	maxHunt     = 10 * time.Second
	stopRounds  = 32   // of SIGSTOP, before killing begins anyway
	quietRounds = 8    // in a row that find nobody, before that is believed
	noisyRounds = 1024 // the same, where somebody else makes processes all the time
	deathWaitMs = 1000 // for one process to end after SIGKILL
)

// KillTree ends processes and everything below them, and returns when all have
// ended; the caller reaps the roots and what the kernel gives him of the rest.
// It finds all if every root was started with Command.Reaper and still lives,
// and could not make siblings (CLONE_PARENT is a matter for a seccomp filter); of
// a root that ended, the caller finds the survivors with [Children].
//
// The tree is stopped first, in rounds, until no round finds anybody new: a
// process that is stopped cannot fork and keeps its place under a limit on
// processes, so that a fork bomb runs out of room. Then all are killed, the
// roots last, since orphans stay findable for as long as those live. The table
// of processes is not read in one moment, and a chain in which each makes the
// next and ends can slip through any number of readings. So one counts in which
// nobody was made, from before it to the last look at whom it found; several in
// a row, with the roots stopped, since not every kernel tells that truly. It
// fails when ctx ends, or after ten seconds, and says how many are left.
//
// A root that is stopped reaps no child, so each process of such a chain leaves a
// zombie. The readings skip the zombies that are known: otherwise a reading would
// take longer with each process that slipped through, and the next one would find
// even fewer. The reading that counts skips none, because the number of a zombie
// that was reaped can be used again.
func KillTree(ctx context.Context, roots ...int) error {
	if len(roots) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxHunt)
	defer cancel()
	h := hunt{roots: roots, stopped: map[process]bool{}, ended: map[int]process{}}
	quiet, whole := 0, false // whole: the next reading skips nothing
	for round := 0; ; round++ {
		newest := newestPID()
		tree, err := h.look(whole)
		if err != nil {
			return fmt.Errorf("kill: %w", err)
		}
		if h.settled(tree) {
			quiet++
			still := newest == newestPID()
			switch {
			case whole && (quiet >= noisyRounds || quiet >= quietRounds && still):
				return h.finish(ctx, tree)
			case quiet >= quietRounds && ctx.Err() != nil:
				return fmt.Errorf("kill: processes may be left, others are made all the time: %w", context.Cause(ctx))
			}
			h.stop(tree)
			whole = still || quiet >= noisyRounds
			continue
		}
		quiet, whole = 0, false
		if ctx.Err() != nil {
			return fmt.Errorf("kill: %d processes are left: %w", len(tree), context.Cause(ctx))
		}
		if round < stopRounds && h.stop(tree) {
			continue
		}
		h.kill(tree)
	}
}

type hunt struct {
	roots   []int
	stopped map[process]bool
	ended   map[int]process // by pid: all threads ended, and the parent may not have reaped it
}

// look reads the tree. Without whole it leaves out the processes that are known to
// have ended.
func (h *hunt) look(whole bool) ([]process, error) {
	skip := h.ended
	if whole {
		skip = nil
	}
	all, err := table(skip)
	return below(all, h.roots), err
}

// dead waits until a process has ended, for at most so many milliseconds, and
// remembers that it has.
func (h *hunt) dead(p process, wait int) bool {
	if h.knownDead(p) {
		return true
	}
	if !p.dead(wait) {
		return false
	}
	h.ended[p.pid] = p
	return true
}

// knownDead compares the start too: the number may have been used again.
func (h *hunt) knownDead(p process) bool {
	known, ok := h.ended[p.pid]
	return ok && known.start == p.start
}

func (h *hunt) isRoot(p process) bool { return slices.Contains(h.roots, p.pid) }

// settled reports whether nobody but the roots is alive.
func (h *hunt) settled(tree []process) bool {
	return !slices.ContainsFunc(tree, func(p process) bool { return !h.isRoot(p) && !h.dead(p, 0) })
}

// stop stops everybody, and reports whether there was somebody new.
func (h *hunt) stop(tree []process) bool {
	fresh := false
	for _, p := range tree {
		if h.knownDead(p) {
			continue
		}
		p.signal(unix.SIGSTOP)
		if !h.stopped[p] {
			h.stopped[p] = true
			fresh = true
		}
	}
	// After the signals: this takes time, and every live process is stopped by now.
	for _, p := range tree {
		if !h.isRoot(p) {
			h.dead(p, 0)
		}
	}
	return fresh
}

// kill ends everybody but the roots, which stay stopped. Signals go out first:
// waiting for one must not give time to the others.
func (h *hunt) kill(tree []process) {
	for _, p := range tree {
		switch {
		case h.isRoot(p):
			p.signal(unix.SIGSTOP)
		case !h.knownDead(p):
			p.signal(unix.SIGKILL)
		}
	}
	for _, p := range tree {
		if !h.isRoot(p) && !h.dead(p, deathWaitMs) {
			return // look again, with an eye on the clock
		}
	}
}

// finish ends the roots.
func (h *hunt) finish(ctx context.Context, tree []process) error {
	for _, p := range tree {
		if h.isRoot(p) {
			p.signal(unix.SIGKILL)
		}
	}
	for _, p := range tree {
		for h.isRoot(p) && !p.dead(deathWaitMs) {
			if ctx.Err() != nil {
				return fmt.Errorf("kill: process %d does not end: %w", p.pid, context.Cause(ctx))
			}
		}
	}
	return nil
}

// Probe reports as [linux.Missing] why this host cannot start and end programs
// so.
func Probe() error {
	// Nothing has a descriptor as high as this, and nothing is closed.
	const nothing = ^uint(0) >> 33
	if err := unix.CloseRange(nothing, nothing, 0); err != nil {
		return &linux.Missing{Feature: "starting programs", Why: "the kernel cannot close all descriptors at once", Remedy: "use Linux 5.9 or newer, and let a surrounding container use close_range", Err: err}
	}
	fd, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err != nil {
		return &linux.Missing{Feature: "ending programs", Why: "the kernel has no handles of processes", Remedy: "use Linux 5.3 or newer, and let a surrounding container use pidfd_open", Err: err}
	}
	_ = unix.Close(fd)
	if err := ownProc(); err != nil {
		return &linux.Missing{Feature: "ending programs", Why: "their processes cannot be found", Remedy: "mount a /proc of this pid namespace", Err: err}
	}
	return nil
}
