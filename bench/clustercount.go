package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
)

// count is how many commands nodes sent to Redis for one call, which was made a few
// times.
type count struct {
	what     string
	commands []int
}

// Leases of nodes. One with the long one renews it after a quarter of an hour, and
// does nothing by itself before; but where nobody was before, it would wait for half
// of it until it trusts the directory.
const (
	shortLease = "COVE_NODE_LEASE_SEC=1"
	longLease  = "COVE_NODE_LEASE_SEC=3600"
)

// counted counts what two nodes ask of Redis.
func (n *nodes) counted(ctx context.Context) (none row, list []count, err error) {
	owner, err := n.node(ctx, "owner", shortLease)
	if err != nil {
		return none, nil, err
	}
	owner.home.stop(syscall.SIGTERM)
	owner.home.env = append(owner.home.env, longLease)
	if err := owner.home.start(ctx); err != nil {
		return none, nil, err
	}
	if err := owner.home.announces(ctx); err != nil {
		return none, nil, err
	}
	err = owner.with(func(near *client.Client) error {
		t := &teller{nodes: n, owner: owner.home, near: near}
		if err := t.opened(ctx); err != nil {
			return err
		}
		other, err := n.node(ctx, "other", longLease)
		if err != nil {
			return err
		}
		if err := other.home.announces(ctx); err != nil {
			return err
		}
		return other.with(func(far *client.Client) error {
			t.far = far
			if none, err = t.owned(ctx); err != nil {
				return err
			}
			err = t.through(ctx)
			list = t.list
			return err
		})
	})
	return none, list, err
}

// announces waits until the server has said where it is: it answers before, and asks
// Redis for some more while others learn of it.
func (h *home) announces(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !bytes.Contains(h.said(), []byte("\n  address  ")) {
		select {
		case <-h.done:
			return fmt.Errorf("cove serve has ended: %.500s", h.said())
		case <-ctx.Done():
			return fmt.Errorf("cove serve does not say where it is: %w: %.500s", ctx.Err(), h.said())
		case <-tick.C:
		}
	}
	return nil
}

// teller counts commands, call by call, through the node that has all sessions and
// through the other one.
type teller struct {
	*nodes

	owner     *home // has the sessions, and ends them if nobody else does
	near, far *client.Client
	list      []count
}

// each makes one call for each of some sessions and notes how many commands each
// needed.
func (t *teller) each(ctx context.Context, what string, ids []cove.ID, call func(id cove.ID) error) error {
	c := count{what: what}
	for _, id := range ids {
		k, err := t.redis.during(ctx, func() error { return call(id) })
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		c.commands = append(c.commands, len(k))
	}
	t.list = append(t.list, c)
	return nil
}

// opened opens the sessions. The first one is not counted: Redis learns scripts, and
// the node the key of who calls.
func (t *teller) opened(ctx context.Context) error {
	open := func(spec cove.Spec) error {
		s, err := t.near.Sessions().Open(ctx, cove.OpenRequest{Spec: spec})
		if err == nil {
			t.owner.sessions = append(t.owner.sessions, s.ID)
		}
		return err
	}
	if err := open(cove.Spec{User: "first"}); err != nil {
		return err
	}
	turns := make([]cove.ID, t.clusterOptions.each)
	for i := range turns {
		turns[i] = cove.NewID()
	}
	if err := t.each(ctx, "create, on the node itself", turns, func(cove.ID) error { return open(cove.Spec{}) }); err != nil {
		return err
	}
	return t.each(ctx, "create for a user who has none", turns, func(id cove.ID) error { return open(cove.Spec{User: string(id)}) })
}

// owned runs programs where they are at home.
func (t *teller) owned(ctx context.Context) (row, error) {
	k, err := t.redis.during(ctx, func() error {
		for range t.execs {
			if err := execTrue(ctx, t.near, t.owner.sessions[0]); err != nil {
				return err
			}
		}
		return nil
	})
	return noneRow(t.execs, k), err
}

// through asks both nodes for what one of them has, and ends it. Before the first
// question the other node does not know the key of who asks, nor Redis the script.
func (t *teller) through(ctx context.Context) error {
	get := func(c *client.Client) func(cove.ID) error {
		return func(id cove.ID) error {
			_, err := c.Sessions().Get(ctx, id)
			if cove.CodeOf(err) == cove.NotFound { // or has ended
				return nil
			}
			return err
		}
	}
	if err := get(t.far)(cove.NewID()); err != nil {
		return err
	}
	some := t.owner.sessions[:t.clusterOptions.each]
	for _, one := range []struct {
		what string
		call func(cove.ID) error
	}{
		{"look-up through the owner", get(t.near)},
		{"first exec through another node", func(id cove.ID) error { return execTrue(ctx, t.far, id) }},
		{"later exec through another node", func(id cove.ID) error { return execTrue(ctx, t.far, id) }},
		{"look-up through another node that knows the owner", get(t.far)},
		{"close, through the owner", func(id cove.ID) error { return closeAll(ctx, t.near, []cove.ID{id}) }},
		{"look-up of a session that has ended, through a node that knows the owner", get(t.far)},
		{"the same again", get(t.far)},
	} {
		if err := t.each(ctx, one.what, some, one.call); err != nil {
			return err
		}
	}
	t.owner.sessions = t.owner.sessions[len(some):]
	return nil
}

// renderCounts returns the counts as a Markdown table.
func renderCounts(list []count) string {
	var b strings.Builder
	b.WriteString("| commands to Redis for a | median | least | most | times |\n|---|---|---|---|---|\n")
	for _, c := range list {
		k := slices.Sorted(slices.Values(c.commands))
		if len(k) > 0 {
			fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", c.what, k[len(k)/2], k[0], k[len(k)-1], len(k))
		}
	}
	return b.String()
}
