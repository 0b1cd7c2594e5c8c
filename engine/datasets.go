package engine

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// datasets is the part of the platform that shows what questions can be asked of.
type datasets struct{ v view }

// List implements [cove.Datasets].
func (d datasets) List(ctx context.Context, f cove.DatasetFilter) iter.Seq2[*cove.Dataset, error] {
	a := action{Action: cove.Action{Verb: cove.DatasetList}}
	return actSeq(ctx, d.v, a, func(ctx context.Context, _ *step) (iter.Seq2[*cove.Dataset, error], error) {
		if d.v.e.cfg.Datasets == nil {
			return each[*cove.Dataset](nil), nil
		}
		all, err := d.v.e.cfg.Datasets.Datasets(ctx)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(all, func(a, b cove.Dataset) int { return strings.Compare(a.ID, b.ID) })
		var out []*cove.Dataset
		for _, set := range all {
			if shown := d.v.p.Limits.Data.Shows(set); shown != nil && set.ID > f.After && (f.Limit == 0 || len(out) < f.Limit) {
				out = append(out, shown)
			}
		}
		return each(out), nil
	})
}

// Schema implements [cove.Datasets].
func (d datasets) Schema(ctx context.Context, id string) (*cove.Dataset, error) {
	a := action{Action: cove.Action{Verb: cove.DatasetSchema}}
	return act(ctx, d.v, a, func(ctx context.Context, _ *step) (*cove.Dataset, error) {
		r, err := d.v.e.runnerOf("")
		if err != nil {
			return nil, err
		}
		return r.Describe(ctx, runHost{d.v}, id, d.v.p.Limits.Data)
	})
}
