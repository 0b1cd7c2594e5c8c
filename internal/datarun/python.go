package datarun

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/datarun/pyrun"
)

// python answers code. It has a place for itself: what it leaves there is for nobody.
func (t *task) python(ctx context.Context) error {
	list, err := t.find(ctx)
	if err != nil {
		return err
	}
	if err := t.judgePython(ctx, list); err != nil {
		return err
	}
	want := cove.RunPlace{Volumes: list.good().volumes()}
	if duck, err := t.cfg.DuckDB(); err == nil && len(list.parquet(t.q.Request.Python)) > 0 {
		want.Tools = []cove.Tool{duck.Tool()}
	}
	return t.in(ctx, want, func(place cove.RunSandbox) error {
		return t.interpret(ctx, place, list)
	})
}

// interpret has code run over tables in an interpreter of its own.
func (t *task) interpret(ctx context.Context, place cove.RunSandbox, list sources) (err error) {
	kernels := t.host.Kernels(place.Provider)
	if kernels == nil {
		return fail(cove.RunUnavailable, "this build has no interpreters, so that nobody can answer Python; ask in SQL")
	}
	began := time.Now()
	i, err := pyrun.Open(ctx, kernels, place.Sandbox)
	since(&t.q.Timings.Place, began)
	if err != nil {
		return err
	}
	var left []string // in a session, which goes on without it
	defer func() {
		if closing := i.Close(ctx); err == nil && closing != nil && t.q.Request.Session != "" {
			err = cove.Wrap(cove.Unavailable, closing, "the interpreter of the run did not end")
		}
		if t.q.Request.Session != "" && len(left) > 0 {
			forget(ctx, place, left)
		}
	}()
	began = time.Now()
	if err := t.bring(ctx, place, list.good()); err != nil {
		return err
	}
	r := t.q.Request
	q := pyrun.Question{Code: r.Python, Timeout: r.Timeout, MaxRows: r.MaxRows, MaxOutput: r.MaxOutput, Memory: place.Memory, Scratch: scratchPath + string(cove.NewID())}
	frames, err := t.frames(ctx, place, list.parquet(r.Python))
	left = slices.AppendSeq([]string{q.Scratch}, maps.Values(frames))
	if err != nil {
		return err
	}
	for _, s := range list {
		one := pyrun.Table{Name: s.Name, Path: s.inside, File: s.File, Format: pyrun.Format(s.Format), Problem: s.Problem}
		if path := frames[s]; path != "" {
			one.Path, one.Format = path, pyrun.Frame
		}
		q.Tables = append(q.Tables, one)
	}
	since(&t.q.Timings.Load, began)
	out, err := i.Run(ctx, q)
	if err != nil {
		return err
	}
	t.q.Timings.Load += out.Load
	t.q.Timings.Query = out.Answer.Wall
	t.answer = out.Answer
	return nil
}
