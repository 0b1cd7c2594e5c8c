package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/measure"
	"github.com/cove-sandbox/cove/internal/rootfs"
	"github.com/cove-sandbox/cove/provider/local"
)

// codeOptions says how code that remembers is measured.
type codeOptions struct {
	python, node string // the executables on the host
	rounds       int    // of Python; Node and pandas start more slowly and take a part of it
	sessions     int    // that are idle at once when their memory is read
	frame        string // code whose value is a first frame
	patience     time.Duration
	kernels      cove.Kernels
}

// What code is measured with.
const (
	sum      = "1+1"
	oneFrame = "import pandas as pd\npd.DataFrame({'a': [1, 2]})"
)

// dataTemplate is the one with pandas.
const dataTemplate = "data"

// preloaded are the modules that warm interpreters have imported, as in a server.
func preloaded(template, language string) []string { return rootfs.Preload(template)[language] }

// codeRows measures interpreters that remember beside those of the host, and what
// idle sessions with one keep.
func codeRows(ctx context.Context, o codeOptions, open func(dir string) (cove.Provider, error)) (rows []row, kept []keeping, err error) {
	for _, part := range []func(context.Context, codeOptions, *kitchen) ([]row, []keeping, error){o.pythonRows, o.nodeRows, o.frameRows} {
		more, idle, err := part(ctx, o, &kitchen{open: open})
		if err != nil {
			return nil, nil, told(err)
		}
		rows, kept = append(rows, more...), append(kept, idle...)
	}
	return rows, kept, nil
}

func (codeOptions) pythonRows(ctx context.Context, o codeOptions, k *kitchen) (rows []row, kept []keeping, err error) {
	if err := k.start(ctx, o, "base", "python"); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, k.close(context.WithoutCancel(ctx))) }()
	live, err := k.live(ctx, sum)
	if err != nil {
		return nil, nil, err
	}
	times, err := measure.Race(ctx, o.rounds, hosted("python3 -c 'print(1)'", o.python, "-c", "print(1)"), live, k.fresh(sum))
	if err != nil {
		return nil, nil, err
	}
	rows = []row{
		over("stateful Python `1+1` in a live session, in process ÷ `python3 -c 'print(1)'` on the host", times[1], times[0], 0.1, 0.02),
		over("fresh Python run from the pool (clean interpreter) ÷ the same host start", times[2], times[0], 0.5, 0.1),
	}
	kept, err = k.idle(ctx, o.sessions, "an idle Python session, after `1+1`", sum)
	return rows, kept, err
}

func (codeOptions) nodeRows(ctx context.Context, o codeOptions, k *kitchen) (rows []row, kept []keeping, err error) {
	if err := k.start(ctx, o, "base", "node"); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, k.close(context.WithoutCancel(ctx))) }()
	live, err := k.live(ctx, sum)
	if err != nil {
		return nil, nil, err
	}
	times, err := measure.Race(ctx, max(1, o.rounds/4), hosted("node -e 1+1", o.node, "-e", sum), live)
	if err != nil {
		return nil, nil, err
	}
	rows = []row{over("stateful Node `1+1` ÷ host `node -e`", times[1], times[0], 0.05, 0.01)}
	kept, err = k.idle(ctx, o.sessions, "an idle Node session, after `1+1`", sum)
	return rows, kept, err
}

func (codeOptions) frameRows(ctx context.Context, o codeOptions, k *kitchen) (rows []row, kept []keeping, err error) {
	if err := k.start(ctx, o, dataTemplate, "python"); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, k.close(context.WithoutCancel(ctx))) }()
	times, err := measure.Race(ctx, max(1, o.rounds/10), hosted("python3 -c 'import pandas'", o.python, "-c", "import pandas"), k.fresh(o.frame))
	if err != nil {
		return nil, nil, err
	}
	rows = []row{over("first pandas frame in a fresh `data` session ÷ host `python3 -c 'import pandas'`", times[1], times[0], 0.3, 0.05)}
	kept, err = k.idle(ctx, o.sessions, "an idle `data` session, after its first frame", o.frame)
	return rows, kept, err
}

func over(name string, took, base measure.Series, must, aim float64) row {
	return row{name: name, measured: taken(took), baseline: taken(base), value: took.Over(base), must: must, aim: aim}
}

// hosted is a start of an interpreter on the host, without what its user set for
// it.
func hosted(name string, argv ...string) measure.Contender {
	return measure.Command(name, []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"}, argv...)
}

// kitchen is an engine with one warm interpreter in its pool when somebody asks for
// it, and no work in the background otherwise.
type kitchen struct {
	*rig

	open     func(dir string) (cove.Provider, error)
	language string
	template string
	patience time.Duration
	turns    chan struct{} // one for each spare that may be made
	ready    chan struct{} // one for each interpreter that waits
	alive    cove.ID       // the session of live
}

// close ends what outlives an engine, and then the engine.
func (k *kitchen) close(ctx context.Context) error {
	var err error
	if k.alive != "" {
		_, err = k.platform.Sessions().Close(ctx, k.alive, false)
	}
	return errors.Join(err, k.rig.close(ctx))
}

func (k *kitchen) start(ctx context.Context, o codeOptions, template, language string) (err error) {
	k.template, k.language, k.patience = template, language, o.patience
	k.turns, k.ready = make(chan struct{}, 1), make(chan struct{}, 1)
	k.rig, err = newRig(ctx, k.open, func(c *engine.Config) {
		c.Providers = []cove.Provider{&stove{c.Providers[0], k.turns}}
		c.Kernels = map[string]cove.Kernels{"": &cook{o.kernels, k.ready}}
		c.Warm, c.PoolSize, c.Preload = true, 1, preloaded
	})
	if err != nil {
		return err
	}
	// The first session teaches the pool which kind is wanted, and in which language.
	s, err := k.session(ctx)
	if err == nil {
		err = k.run(ctx, s, sum)
	}
	if err == nil {
		_, err = k.platform.Sessions().Close(ctx, s, false)
	}
	if err != nil {
		return errors.Join(err, k.close(context.WithoutCancel(ctx)))
	}
	return nil
}

func (k *kitchen) session(ctx context.Context) (cove.ID, error) {
	s, err := k.platform.Sessions().Open(ctx, cove.OpenRequest{Spec: cove.Spec{Template: k.template}})
	if err != nil {
		return "", err
	}
	return s.ID, nil
}

// run runs code, which must have a value.
func (k *kitchen) run(ctx context.Context, id cove.ID, code string) error {
	r, err := k.platform.Contexts(id).Run(ctx, cove.CodeRequest{Language: k.language, Code: code})
	if err == nil && r.Error != nil {
		err = fmt.Errorf("%.80q: %s: %s", code, r.Error.Name, r.Error.Value)
	}
	if err == nil && len(r.Results) != 1 {
		err = fmt.Errorf("%.80q has %d values", code, len(r.Results))
	}
	return err
}

// stock has a spare made and waits until there is a warm interpreter in it.
func (k *kitchen) stock(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, k.patience, fmt.Errorf("no %s became warm within %s", k.language, k.patience))
	defer cancel()
	select {
	case k.turns <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-k.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	// An interpreter may be ready before its spare is where sessions find it.
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		stats, err := k.platform.Admin().Stats(ctx)
		if err != nil || stats.PoolAvailable > 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// live runs code in a session that has run some.
func (k *kitchen) live(ctx context.Context, code string) (measure.Contender, error) {
	id, err := k.session(ctx)
	k.alive = id
	return measure.Contender{Name: code + " in a live session", Run: func(ctx context.Context) error { return k.run(ctx, id, code) }}, err
}

// fresh opens a session from the pool and runs code in it.
func (k *kitchen) fresh(code string) measure.Contender {
	var id cove.ID
	return measure.Contender{
		Name: "a fresh session", Before: k.stock,
		Run: func(ctx context.Context) (err error) {
			if id, err = k.session(ctx); err != nil {
				return err
			}
			return k.run(ctx, id, code)
		},
		After: func(ctx context.Context) error {
			if id == "" {
				return nil
			}
			_, err := k.platform.Sessions().Close(ctx, id, false)
			return err
		},
	}
}

// keeping is what idle sessions of one kind keep.
type keeping struct {
	what string
	measure.Memory
}

// idle opens sessions from the pool, runs code in each, and looks at their memory.
func (k *kitchen) idle(ctx context.Context, sessions int, what, code string) ([]keeping, error) {
	m, err := measure.Kept(ctx, sessions, func(ctx context.Context) (func(context.Context) error, error) {
		if err := k.stock(ctx); err != nil {
			return nil, err
		}
		id, err := k.session(ctx)
		if err == nil {
			err = k.run(ctx, id, code)
		}
		return func(ctx context.Context) error {
			if id == "" {
				return nil
			}
			_, err := k.platform.Sessions().Close(ctx, id, false)
			return err
		}, err
	})
	return []keeping{{what, m}}, err
}

// renderKept returns what sessions keep as a table.
func renderKept(all []keeping) string {
	var text strings.Builder
	text.WriteString("| memory of | private | its share of what is shared, too | processes | beside the sessions | at once |\n|---|---|---|---|---|---|\n")
	for _, k := range all {
		fmt.Fprintf(&text, "| %s | %s | %s | %.0f | %s in %d process(es) | %d |\n",
			k.what, megabytes(k.Private), megabytes(k.Share), k.Processes, megabytes(k.ProviderPrivate), k.ProviderProcesses, k.Sessions)
	}
	return text.String()
}

// stove is a provider that prepares sandboxes when it is their turn.
type stove struct {
	cove.Provider

	turns chan struct{}
}

// Unwrap returns the provider.
func (s *stove) Unwrap() cove.Provider { return s.Provider }

// Prepare implements [cove.Preparer].
func (s *stove) Prepare(ctx context.Context, m cove.Mold) (cove.Spare, error) {
	preparer, ok := cove.As[cove.Preparer](s.Provider)
	if !ok {
		return nil, cove.Errorf(cove.Unsupported, "provider %s prepares nothing", s.Name())
	}
	select {
	case <-s.turns:
		return preparer.Prepare(ctx, m)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cook says when a warm interpreter is ready.
type cook struct {
	cove.Kernels

	ready chan struct{}
}

// Open implements [cove.Kernels].
func (c *cook) Open(ctx context.Context, in cove.Starter, spec cove.KernelSpec) (cove.Kernel, error) {
	k, err := c.Kernels.Open(ctx, in, spec)
	if err == nil && spec.Warm {
		select {
		case c.ready <- struct{}{}:
		default:
		}
	}
	return k, err
}

// hostData is the template data where the host has its modules.
type hostData struct{}

// Names implements [local.Templates].
func (hostData) Names() []string { return []string{dataTemplate} }

// Lacking implements [local.Templates].
func (hostData) Lacking() []string { return nil }

// Get implements [local.Templates].
func (hostData) Get(name string) (local.Template, error) {
	if name != dataTemplate {
		return local.Template{}, cove.Errorf(cove.NotFound, "there is no template %.60q", name)
	}
	return local.Template{Name: name, Kind: local.KindHost, Preload: rootfs.Preload(name)}, nil
}
