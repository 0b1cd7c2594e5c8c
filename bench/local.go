package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/measure"
)

// localOptions says how the local provider is measured.
type localOptions struct {
	rounds int
	churn  int    // sandboxes that are made and destroyed
	cove   string // the executable that make build made
	judge  string // the executable of go-judge; "" where there is none
}

// findings is all that was measured of the local provider.
type findings struct {
	report measure.Report
	absent []absence // peers that are not here
	slow   []measure.Timing
	churn  struct {
		times int
		each  float64 // milliseconds
		left  measure.Census
	}
}

// keyRun is the contender that is a whole command of ours.
const keyRun = "cove run -- true, the whole command"

// measureLocal measures a provider that open opens in a directory of its own,
// beside all peers that are here.
func measureLocal(ctx context.Context, o localOptions, open func(dir string) (cove.Provider, error)) (f findings, err error) {
	if _, err := measure.Bwrap(ctx); err != nil {
		return f, fmt.Errorf("two rows are measured against bubblewrap: %w", told(err))
	}
	dir, err := os.MkdirTemp("", "cove-bench-")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := open(filepath.Join(dir, "provider"))
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	stage, err := measure.Open(ctx, p)
	if err != nil {
		return f, told(err)
	}
	defer func() { err = errors.Join(err, stage.Close(ctx)) }()

	f.churn.times = o.churn
	each, left, err := stage.Churn(ctx, o.churn)
	if err != nil {
		return f, fmt.Errorf("create and destroy: %w", err)
	}
	f.churn.each, f.churn.left = float64(each.Microseconds())/1000, left

	others := findPeers(ctx, o.judge, dir)
	defer others.close()
	f.absent = others.absent
	run := measure.Command(keyRun, []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "SANDBOX_PROVIDER=" + p.Name(), "COVE_HOME=" + filepath.Join(dir, "home"),
	}, o.cove, "run", "--", "true")
	f.report, err = stage.Run(ctx, measure.Config{Rounds: o.rounds, Others: append([]measure.Contender{run}, others.quick...)})
	if err != nil {
		return f, told(err)
	}
	f.slow, err = raceSlow(ctx, others.slow)
	return f, err
}

// told adds the remedy to an error for people.
func told(err error) error {
	if remedy := cove.RemedyOf(err); remedy != "" {
		return fmt.Errorf("%w; %s", err, remedy)
	}
	return err
}

// raceSlow measures what would make the other rounds take minutes.
func raceSlow(ctx context.Context, slow []measure.Contender) ([]measure.Timing, error) {
	if len(slow) == 0 {
		return nil, nil
	}
	const rounds = 20
	times, err := measure.Race(ctx, rounds, append([]measure.Contender{measure.Host()}, slow...)...)
	if err != nil {
		return nil, err
	}
	var all []measure.Timing
	for i, c := range slow {
		all = append(all, measure.TimingOf(c.Name, c, times[i+1], times[0]))
	}
	return all, nil
}

// rows are the promises about the local provider.
func (f findings) rows() ([]row, error) {
	if f.report.Memory == nil || f.report.Memory.Processes == 0 {
		return nil, errors.New("the memory of sandboxes cannot be read: run make bench as root")
	}
	cold := measure.KeyCold
	if _, ok := f.report.Of(measure.KeySolo); ok {
		cold = measure.KeySolo
	}
	var rows []row
	for _, r := range []struct {
		key, over string
		name      string
		must, aim float64
	}{
		{measure.KeyLive, measure.KeyHost, "exec `true` in a live session ÷ Go os/exec of `true` on the host", 1.5, 1.1},
		{measure.KeyPooled, measure.KeyHost, "first exec from the pool ÷ the same", 2, 1.3},
		{cold, measure.KeyBwrap, "cold create + exec + destroy, in process ÷ `bwrap --unshare-all … true`", 1, 0.5},
		{keyRun, measure.KeyBwrap, "`cove run -- true`, the whole command ÷ the same bwrap", 1.5, 1},
	} {
		got, ok := f.report.Of(r.key)
		base, ok2 := f.report.Of(r.over)
		if !ok || !ok2 {
			return nil, fmt.Errorf("%s was not measured", r.name)
		}
		value := got.OverHost
		if r.over == measure.KeyBwrap {
			value = got.OverBwrap
		}
		rows = append(rows, row{name: r.name, measured: spread(got), baseline: spread(base), value: value, must: r.must, aim: r.aim})
	}
	for _, c := range f.report.Crowds {
		where := "in one session"
		if c.Sessions > 1 {
			where = "each in a session of its own"
		}
		rows = append(rows, row{
			name:     fmt.Sprintf("%d concurrent execs, %s: throughput ÷ host os/exec throughput", c.Workers, where),
			measured: fmt.Sprintf("%.0f/s", c.Inside), baseline: fmt.Sprintf("%.0f/s", c.Host), value: c.OverHost, must: 0.7, aim: 0.95, least: true,
		})
	}
	return append(rows, f.memoryRow(), f.churnRow()), nil
}

func (f findings) memoryRow() row {
	m := f.report.Memory
	return row{
		name:     "private memory per idle session of template base",
		measured: fmt.Sprintf("%s in %.3g process(es)", megabytes(m.Private), m.Processes),
		baseline: fmt.Sprintf("%d sessions at once; the provider itself: %s in %d process(es)", m.Sessions, megabytes(m.ProviderPrivate), m.ProviderProcesses),
		value:    float64(m.Private) / float64(cove.MiB), unit: " MB", must: 2, aim: 0.1,
	}
}

func (f findings) churnRow() row {
	l := f.churn.left
	return row{
		name:     fmt.Sprintf("left after %d create+destroy: processes, mounts, cgroups, namespaces, descriptors", f.churn.times),
		measured: fmt.Sprintf("%+d, %+d, %+d, %+d, %+d", l.Processes, l.Mounts, l.Cgroups, l.Namespaces, l.Descriptors),
		baseline: fmt.Sprintf("the counts before; one took %.2f ms", f.churn.each),
		value:    float64(l.Surplus()),
	}
}

func spread(t measure.Timing) string { return fmt.Sprintf("%.2f ms, p95 %.2f", t.Median, t.P95) }

func megabytes(b cove.Bytes) string { return fmt.Sprintf("%.2f MB", float64(b)/float64(cove.MiB)) }
