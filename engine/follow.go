package engine

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

// chunks is what the program writes, from an offset on.
func (pr *process) chunks(ctx context.Context, offset int64) iter.Seq2[cove.Chunk, error] {
	return func(yield func(cove.Chunk, error) bool) {
		for c, err := range pr.output(ctx, offset) {
			if err != nil && pr.x.isLetGo() {
				err = runsOn()
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// output follows the log. What a program wrote before the server was started may
// still be on its way: then an offset is no mistake only because it lies beyond
// what is there.
func (pr *process) output(ctx context.Context, offset int64) iter.Seq2[cove.Chunk, error] {
	log := pr.x.log
	if !pr.x.resumed || offset <= log.Total() {
		return log.Follow(ctx, offset)
	}
	return func(yield func(cove.Chunk, error) bool) {
		end := log.Total()
		for c, err := range log.Follow(ctx, end) {
			if err == nil {
				end = c.Offset + int64(len(c.Data))
				if end <= offset {
					continue
				}
				if skip := offset - c.Offset; skip > 0 {
					c.Offset, c.Data = offset, c.Data[skip:]
				}
			}
			if !yield(c, err) {
				return
			}
		}
		if end < offset {
			yield(cove.Chunk{}, cove.InvalidField("offset", "%d is out of range; use 0 to %d", offset, end))
		}
	}
}
