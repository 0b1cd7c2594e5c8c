package e2bapi

import (
	"context"
	"sync"
)

// watchAnswer is one message of a watch.
type watchAnswer struct {
	Start     *nothing `json:"start,omitempty"`
	Change    *event   `json:"filesystem,omitempty"`
	Keepalive *nothing `json:"keepalive,omitempty"`
}

// watchDir tells of changes until the client goes or its deadline comes.
func (c *call) watchDir(ctx context.Context, in watchMessage, out *streamWriter) error {
	f, err := c.newFeed(ctx, in)
	if err != nil {
		return err
	}
	defer f.end()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { f.run(ctx) })
	if err := f.begun(ctx); err != nil {
		return err
	}
	if err := out.send(watchAnswer{Start: &nothing{}}); err != nil {
		return err
	}
	out.beat(watchAnswer{Keepalive: &nothing{}})
	for {
		select {
		case <-f.poke:
		case <-f.over:
		}
		if err := c.pass(ctx, f, out); err != nil {
			return err
		}
	}
}

// pass sends all that waits.
func (c *call) pass(ctx context.Context, f *feed, out *streamWriter) error {
	for {
		list, err := f.take(feedBatch)
		if err != nil || len(list) == 0 {
			return err
		}
		for i, one := range list {
			e := f.told(ctx, one)
			put := out.hold
			if i == len(list)-1 {
				put = out.send
			}
			if err := put(watchAnswer{Change: &e}); err != nil {
				return err
			}
		}
	}
}
