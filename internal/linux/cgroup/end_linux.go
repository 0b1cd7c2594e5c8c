package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxWait bounds every wait for the kernel, whatever the context says.
const maxWait = 10 * time.Second

// until calls done again and again, less and less often, until it says so.
func until(ctx context.Context, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		if ok, err := done(); ok || err != nil {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// Freeze stops every process of the group, and those that are added, until
// Thaw. It returns when all have stopped; with an error, some may still run.
func (g *Group) Freeze(ctx context.Context) error { return g.freeze(ctx, true) }

// Thaw lets the processes of the group run again.
func (g *Group) Thaw(ctx context.Context) error { return g.freeze(ctx, false) }

func (g *Group) freeze(ctx context.Context, frozen bool) error {
	err := fmt.Errorf("freezing: %w", errors.ErrUnsupported)
	if h := g.home2(); h != nil && exists(h.dir, "cgroup.freeze") {
		err = h.freeze2(ctx, frozen)
	} else if h := g.home("freezer"); h != nil {
		err = h.freeze1(ctx, frozen)
	}
	if err != nil {
		return fmt.Errorf("control group %s: %w", g.name, err)
	}
	return nil
}

func (h home) freeze2(ctx context.Context, frozen bool) error {
	want := int64(0)
	if frozen {
		want = 1
	}
	if err := write(h.dir, "cgroup.freeze", strconv.FormatInt(want, 10)); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		n, err := readKey(h.dir, "cgroup.events", "frozen")
		return n == want, err
	})
}

func (h home) freeze1(ctx context.Context, frozen bool) error {
	want := "THAWED"
	if frozen {
		want = "FROZEN"
	}
	return until(ctx, func() (bool, error) {
		// Written again each time: a process that was forked meanwhile is frozen
		// by the next write.
		if err := write(h.dir, "freezer.state", want); err != nil {
			return false, err
		}
		state, err := read(h.dir, "freezer.state")
		return state == want, err
	})
}

// Kill ends every process of the group, frozen or not, and returns when none is
// left. Nothing can run away: all are killed in one stroke, or frozen first
// where the kernel can do neither at once. A group that was removed has nobody
// to kill.
func (g *Group) Kill(ctx context.Context) error {
	h := g.home2()
	atOnce := h != nil && exists(h.dir, "cgroup.kill")
	round := 0
	err := until(ctx, func() (bool, error) {
		if empty, err := g.Empty(); empty || err != nil {
			return empty, err
		}
		round++
		if atOnce {
			if err := write(h.dir, "cgroup.kill", "1"); err != nil && !gone(err) {
				return false, err
			}
			// Dying takes a moment. Who lives longer than this was never
			// in the group's directory of version 2.
			if round < 5 {
				return false, nil
			}
		}
		return false, g.hunt(ctx)
	})
	if err != nil {
		return fmt.Errorf("control group %s: kill: %w", g.name, err)
	}
	return nil
}

// hunt kills all members one by one.
func (g *Group) hunt(ctx context.Context) error {
	// Best effort: who does not freeze is killed by the next round.
	_ = g.Freeze(ctx)
	pids, err := g.processes()
	for some := range slices.Chunk(pids, 64) {
		err = errors.Join(err, g.signal(some, unix.SIGKILL))
	}
	// In version 1, signals reach the frozen when they thaw.
	_ = g.Thaw(ctx)
	return err
}

// signal sends a signal to those of a few processes that are still in the group
// when we hold handles of them: a number may be another's by now.
func (g *Group) signal(pids []int, sig unix.Signal) error {
	handles := map[int]int{}
	defer func() {
		for _, fd := range handles {
			_ = unix.Close(fd)
		}
	}()
	for _, pid := range pids {
		// 0 stands for those of a pid namespace that we do not see.
		if fd, err := unix.PidfdOpen(pid, 0); pid > 0 && err == nil {
			handles[pid] = fd
		}
	}
	members, err := g.processes()
	if err != nil {
		return err
	}
	for pid, fd := range handles {
		if _, ok := slices.BinarySearch(members, pid); ok {
			_ = unix.PidfdSendSignal(fd, sig, nil, 0)
		}
	}
	return nil
}

// Remove takes the group away, with groups that were made in it. Its processes
// must be dead or on their way: it waits for them, and fails if they stay. A
// group that is gone is no error.
func (g *Group) Remove(ctx context.Context) error {
	g.closeFD()
	var errs []error
	for _, h := range g.homes {
		err := until(ctx, func() (bool, error) {
			err := removeTree(h.dir)
			if busy(err) {
				return false, nil
			}
			return true, err
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("control group %s: remove %s: %w", g.name, h.dir, err))
		}
	}
	return errors.Join(errs...)
}

// removeNow removes a group that nobody was ever in.
func (g *Group) removeNow() error {
	var errs []error
	for _, h := range g.homes {
		if err := remove(h.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("control group %s: %w", g.name, err))
		}
	}
	return errors.Join(errs...)
}

// maxNested bounds how many groups within a group are removed in one go.
const maxNested = 10_000

// removeTree removes directories only: a control group's files go with it.
func removeTree(dir string) error {
	err := remove(dir)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var nested []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && len(nested) < maxNested {
			nested = append(nested, path)
		}
		return nil
	})
	slices.SortFunc(nested, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	for _, path := range nested {
		if err = remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
