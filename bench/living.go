package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/measure"
)

// livingOptions says how much is measured of what sessions can do.
type livingOptions struct {
	rounds   int           // of snapshots; others take a multiple or a part of it
	fill     string        // the line that puts files into data, in a workspace
	download cove.Bytes    // how much comes in through the way out
	patience time.Duration // for what is done in the background
	restart  restartOptions

	dir string // of the provider
}

// fill100 makes 100 MB, in files of different sizes.
const fill100 = `mkdir data && head -c 90000000 /dev/urandom | split -a 4 -b 1000000 - data/large && head -c 10000000 /dev/urandom | split -a 4 -b 10000 - data/small`

// livingSpec is a session with room for several times what is saved of it.
func livingSpec(n cove.Network) cove.Spec {
	if n.Mode == "" {
		n.Mode = cove.NetworkNone
	}
	return cove.Spec{
		Template:  "base",
		Resources: cove.Resources{Memory: cove.GiB, PIDs: 256},
		Network:   n,
		Workspace: cove.Workspace{Kind: cove.WorkspaceMemory, Size: 512 * cove.MiB, Files: 100_000},
	}
}

// livingRows measures what sessions can do beside running programs, of a
// provider that open opens in a directory of its own.
func livingRows(ctx context.Context, o livingOptions, open func(dir string) (cove.Provider, error)) (rows []row, err error) {
	dir, err := os.MkdirTemp("", "cove-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o.dir = filepath.Join(dir, "provider")
	p, err := open(o.dir)
	if err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context, livingOptions, cove.Provider) ([]row, error){savedRows, trialRows, egressRows} {
		more, err := part(ctx, o, p)
		if err != nil {
			return nil, errors.Join(told(err), p.Close())
		}
		rows = append(rows, more...)
	}
	if err := p.Close(); err != nil {
		return nil, err
	}
	last, err := restartRow(ctx, o.restart)
	if err != nil {
		return nil, told(err)
	}
	return append(rows, last), nil
}

// inSandbox does something with a sandbox that is destroyed then.
func inSandbox(ctx context.Context, p cove.Provider, n cove.Network, do func(cove.Sandbox) error) error {
	box, err := p.Create(ctx, cove.NewID(), livingSpec(n))
	if err != nil {
		return err
	}
	return errors.Join(do(box), box.Destroy(context.WithoutCancel(ctx)))
}

// mostSaved is in how many rounds a workspace is saved before another takes its
// place: one that is saved again and again gets deeper, and is copied in the end.
const mostSaved = 3

// savedRows compares snapshots and forks of a workspace that was changed since the
// last one with a copy of the same files, in a workspace that is never saved.
func savedRows(ctx context.Context, o livingOptions, p cove.Provider) ([]row, error) {
	var times [3]measure.Series
	err := inSandbox(ctx, p, cove.Network{}, func(plain cove.Sandbox) error {
		if _, err := runLine(ctx, plain, o.fill); err != nil {
			return err
		}
		copied := measure.Contender{Name: "cp -a", Run: line(plain, "cp -a data copy"), After: line(plain, "rm -r copy")}
		for len(times[0]) < o.rounds {
			more, err := o.saved(ctx, p, copied)
			if err != nil {
				return err
			}
			for i, m := range more {
				times[i] = append(times[i], m...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	const over = " ÷ `cp -a` of its files"
	return rowsOver(0.2, times[0], times[1:], "snapshot of a workspace of 100 MB"+over, "fork of a session with 100 MB"+over), nil
}

// saved lets a copy, snapshots and forks of a new workspace run some rounds.
func (o livingOptions) saved(ctx context.Context, p cove.Provider, copied measure.Contender) (times []measure.Series, err error) {
	err = inSandbox(ctx, p, cove.Network{}, func(box cove.Sandbox) error {
		if _, err := runLine(ctx, box, o.fill); err != nil {
			return err
		}
		snapshot, err := o.snapshot(p, box)
		if err != nil {
			return err
		}
		fork, err := forked(p, box)
		if err != nil {
			return err
		}
		times, err = measure.Race(ctx, mostSaved, copied, snapshot, fork)
		return err
	})
	return times, err
}

// snapshot saves a workspace that has changed.
func (o livingOptions) snapshot(p cove.Provider, box cove.Sandbox) (c measure.Contender, err error) {
	shooter, ok := cove.As[cove.Snapshotter](box)
	keeper, ok2 := cove.As[cove.SnapshotKeeper](p)
	if !ok || !ok2 {
		return c, fmt.Errorf("provider %s makes no snapshots here", p.Name())
	}
	var name cove.ID
	return measure.Contender{
		Name:   "snapshot",
		Before: line(box, change),
		Run: func(ctx context.Context) error {
			id := cove.NewID()
			_, err := shooter.Snapshot(ctx, id)
			if err == nil {
				name = id
			}
			return err
		},
		After: func(ctx context.Context) error {
			if name == "" {
				return nil
			}
			defer func() { name = "" }()
			// What is written in the background must not make a copy seem slow.
			err := o.written(ctx, name)
			return errors.Join(err, keeper.RemoveSnapshot(ctx, name))
		},
	}, nil
}

// written waits until a snapshot is on the disk.
func (o livingOptions) written(ctx context.Context, name cove.ID) error {
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		found, err := filepath.Glob(filepath.Join(o.dir, "*snapshots", string(name)+"*"))
		if err != nil {
			return err
		}
		if slices.ContainsFunc(found, func(path string) bool { return !strings.HasSuffix(path, ".draft") }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("snapshot %s is not on the disk", name)
		case <-tick.C:
		}
	}
}

// forked doubles a session whose workspace has changed.
func forked(p cove.Provider, box cove.Sandbox) (c measure.Contender, err error) {
	forker, ok := cove.As[cove.Forker](box)
	if !ok {
		return c, fmt.Errorf("provider %s makes no forks here", p.Name())
	}
	var twin cove.Sandbox
	return measure.Contender{
		Name:   "fork",
		Before: line(box, change),
		Run: func(ctx context.Context) (err error) {
			twin, err = forker.Fork(ctx, cove.NewID(), livingSpec(cove.Network{}))
			return err
		},
		After: func(ctx context.Context) error {
			if twin == nil {
				return nil
			}
			defer func() { twin = nil }()
			return twin.Destroy(ctx)
		},
	}, nil
}

// trialRows compares a program whose changes are on trial with a plain one.
func trialRows(ctx context.Context, o livingOptions, p cove.Provider) (rows []row, err error) {
	err = inSandbox(ctx, p, cove.Network{}, func(box cove.Sandbox) error {
		trier, ok := cove.As[cove.Trier](box)
		if !ok {
			return fmt.Errorf("provider %s has no trials here", p.Name())
		}
		try := func(end func(cove.Trial, context.Context) error) func(context.Context) error {
			return func(ctx context.Context) error { return tried(ctx, trier, box, end) }
		}
		times, err := measure.Race(ctx, 20*o.rounds,
			measure.Contender{Name: "exec", Run: line(box, change)},
			measure.Contender{Name: "exec and discard", Run: try(cove.Trial.Discard)},
			measure.Contender{Name: "exec and commit", Run: try(cove.Trial.Commit)})
		if err != nil {
			return err
		}
		const what = "transactional exec, its changes listed and %s ÷ plain exec"
		rows = rowsOver(2, times[0], times[1:], fmt.Sprintf(what, "discarded"), fmt.Sprintf(what, "committed"))
		return nil
	})
	return rows, err
}

// change is the line whose changes are on trial.
const change = "echo new >file"

// tried runs a line on trial, looks at what it changed and ends the trial.
func tried(ctx context.Context, trier cove.Trier, box cove.Sandbox, end func(cove.Trial, context.Context) error) error {
	t, err := trier.Try(ctx)
	if err != nil {
		return err
	}
	_, err = runLine(ctx, box, change)
	n := 0
	for _, wrong := range t.Changes(ctx) {
		err = errors.Join(err, wrong)
		n++
	}
	if err == nil && n != 1 {
		err = fmt.Errorf("%d changes instead of one", n)
	}
	if err != nil {
		return errors.Join(err, t.Discard(context.WithoutCancel(ctx)))
	}
	return end(t, ctx)
}

// rowsOver gives each of some a row: how many times longer it took than base.
func rowsOver(must float64, base measure.Series, times []measure.Series, names ...string) (rows []row) {
	for i, took := range times {
		rows = append(rows, row{name: names[i], measured: taken(took), baseline: taken(base), value: took.Over(base), must: must})
	}
	return rows
}

func taken(s measure.Series) string {
	return fmt.Sprintf("%.2f ms, p95 %.2f", micros(s.Median())/1000, micros(s.P95())/1000)
}

// line is a line of the shell as a contender runs it.
func line(box cove.Sandbox, text string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := runLine(ctx, box, text)
		return err
	}
}

// runLine runs a line of the shell in a sandbox, as runIn does.
func runLine(ctx context.Context, box cove.Sandbox, text string) (string, error) {
	return runIn(ctx, box, []string{"sh", "-c", text})
}

// runIn runs a program in a sandbox and returns what it says. It must succeed.
func runIn(ctx context.Context, box cove.Sandbox, argv []string) (string, error) {
	var out, complaint strings.Builder
	p, err := box.Start(ctx, cove.Command{Argv: argv, Stdout: &out, Stderr: &complaint, Limits: cove.Limits{Output: 64 * cove.KiB}})
	if err != nil {
		return "", err
	}
	r, err := p.Wait(ctx)
	if err == nil && (r.Outcome != cove.Exited || r.ExitCode != 0) {
		err = fmt.Errorf("%.80q %s with exit code %d: %.200s", argv, r.Outcome, r.ExitCode, complaint.String())
	}
	return out.String(), err
}
