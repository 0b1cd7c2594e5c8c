package main

import (
	"context"
	"errors"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/measure"
)

// execRow compares a program that runs through the server with one that runs
// through an engine in this process, with the same parts below it.
func (b *served) execRow(ctx context.Context) (rows []row, err error) {
	r, err := newRig(ctx, b.open)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close(context.WithoutCancel(ctx))) }()
	spec := cove.Spec{Resources: cove.Resources{CPUs: 4, Memory: 64 * cove.MiB, PIDs: 64}} // as tiny
	own, err := r.platform.Sessions().Open(ctx, cove.OpenRequest{Spec: spec})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll(ctx, r.platform, []cove.ID{own.ID})) }()
	err = b.inSessions(ctx, 1, cove.Spec{}, func(c *client.Client, ids []cove.ID) error {
		times, err := measure.Race(ctx, b.rounds,
			measure.Contender{Name: "in process", Run: func(ctx context.Context) error { return execTrue(ctx, r.platform, own.ID) }},
			measure.Contender{Name: "over HTTP", Run: func(ctx context.Context) error { return execTrue(ctx, c, ids[0]) }})
		if err != nil {
			return err
		}
		rows = rowsOver(1.6, times[0], times[1:], "exec `true` in a live session, over HTTP ÷ the same in process")
		return nil
	})
	return rows, err
}
