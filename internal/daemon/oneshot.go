package daemon

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/store/memory"
)

// maxLanes bounds the runs at once on one COVE_HOME.
const maxLanes = 4096

// Local is a platform in this process.
type Local struct {
	cove.Platform

	parts *assembly
	lane  *lane
}

// OneShot returns a platform for one run in this process, as the user who runs
// it. Any number of processes may have one at a time; each has a lane of
// COVE_HOME to itself, and sessions are forgotten with it. The caller closes it.
//
// spec is what the session of the run will ask for, and solo says that it will
// run one program and nothing else. Its sandbox is prepared while the platform is
// put together; a session that wants another one gets it all the same, later.
func OneShot(ctx context.Context, cfg config.Config, spec cove.Spec, solo bool) (*Local, error) {
	return oneShot(ctx, cfg, site{run: &spec, solo: solo})
}

// OneShotCode is [OneShot] for a run of one piece of code in a language: its
// interpreter is started with its sandbox.
func OneShotCode(ctx context.Context, cfg config.Config, spec cove.Spec, language string) (*Local, error) {
	return oneShot(ctx, cfg, site{run: &spec, language: language})
}

func oneShot(ctx context.Context, cfg config.Config, at site) (*Local, error) {
	home, err := OpenHome(cfg.Home)
	if err != nil {
		return nil, err
	}
	l, err := home.takeLane()
	if err != nil {
		return nil, err
	}
	at.dir, at.node, at.logger, at.fresh = l.dir, cfg.NodeID+"/"+l.name(), slog.New(slog.DiscardHandler), l.fresh
	at.store = func(context.Context) (cove.Store, error) { return memory.New(), nil }
	parts, err := assemble(ctx, cfg, at)
	if err != nil {
		return nil, errors.Join(err, l.giveBack(false))
	}
	return &Local{Platform: parts.engine.As(owner()), parts: parts, lane: l}, nil
}

// Close ends the platform and gives its lane back.
func (l *Local) Close(ctx context.Context) error {
	err := l.parts.end(ctx)
	return errors.Join(err, l.lane.giveBack(err == nil))
}

// lane is a part of COVE_HOME that one run has to itself.
type lane struct {
	number int
	dir    string
	lock   *lock
	fresh  bool // whoever had it before has left nothing
}

func (l *lane) name() string { return "oneshot-" + strconv.Itoa(l.number) }

// inUse marks a lane whose run has not ended cleanly yet.
func (l *lane) inUse() string { return filepath.Join(l.dir, "in-use") }

// takeLane takes the first lane that is free: before all others those that a
// killed run left, so that what it left there is removed soon.
func (h Home) takeLane() (*lane, error) {
	known, err := h.laneNumbers()
	if err != nil {
		return nil, homeError(h.dir, err)
	}
	for n := range laneOrder(known, func(n int) bool { _, err := os.Lstat(h.lane(n).inUse()); return err == nil }) {
		l := h.lane(n)
		err := l.take()
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, errHeld) {
			return nil, homeError(h.dir, err)
		}
	}
	return nil, cove.Errorf(cove.Exhausted, "%d runs are under way in %s already", maxLanes, h.dir).Remedy("wait for some to end, or use cove serve")
}

// laneOrder yields the lanes to try: those of known that are in use, and then
// all.
func laneOrder(known []int, inUse func(int) bool) iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, n := range known {
			if inUse(n) && !yield(n) {
				return
			}
		}
		for n := range maxLanes {
			if !yield(n) {
				return
			}
		}
	}
}

func (h Home) lane(n int) *lane {
	return &lane{number: n, dir: filepath.Join(h.lanes(), strconv.Itoa(n))}
}

func (l *lane) take() error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	k, err := takeLock(filepath.Join(l.dir, "lock"))
	if err != nil {
		return err
	}
	mark, err := os.OpenFile(l.inUse(), os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = mark.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return errors.Join(err, k.free())
	}
	l.lock, l.fresh = k, err == nil
	return nil
}

// giveBack frees the lane; clean says that nothing is left in it.
func (l *lane) giveBack(clean bool) error {
	var err error
	if clean {
		err = os.Remove(l.inUse())
	}
	return errors.Join(err, l.lock.free())
}

// laneNumbers returns the lanes that exist, in order.
func (h Home) laneNumbers() ([]int, error) {
	entries, err := os.ReadDir(h.lanes())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n >= 0 && n < maxLanes && e.IsDir() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}
