package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/measure"
)

// clusterOptions says how much is measured of nodes that share a Redis.
type clusterOptions struct {
	restartOptions // how to start a node; its sessions and rounds are not used

	redis   string // the executable
	rounds  int    // of one exec through each node
	creates int    // of one session on each server
	execs   int    // during which the commands to Redis are counted
	each    int    // how often each other call is made whose commands are counted
}

func clusterPart(ctx context.Context, o options) (string, []row, error) {
	if _, err := exec.LookPath(o.cluster.redis); err != nil {
		return absent(o, partCluster, "there is no "+o.cluster.redis+", which scripts/setup.sh bench installs")
	}
	rows, counts, err := clusterRows(ctx, o.cluster)
	return render("what many nodes cost", rows) + "\n" + renderCounts(counts), rows, err
}

// clusterRows times two nodes that are as an operator has them, and counts what two
// others ask of Redis whose leases are so long that they do not ask by themselves.
func clusterRows(ctx context.Context, o clusterOptions) (rows []row, counts []count, err error) {
	err = o.among(ctx, func(n *nodes) (err error) {
		rows, err = n.timed(ctx)
		return err
	})
	if err != nil {
		return nil, nil, told(err)
	}
	err = o.among(ctx, func(n *nodes) error {
		none, list, err := n.counted(ctx)
		rows, counts = append(rows, none), list
		return err
	})
	return rows, counts, told(err)
}

// nodes are servers, and the Redis that those share which are nodes of a cluster.
type nodes struct {
	clusterOptions

	dir   string
	redis *redisServer
	homes []*home
}

// among starts a Redis, does something with servers, and ends all of them.
func (o clusterOptions) among(ctx context.Context, do func(*nodes) error) (err error) {
	dir, err := os.MkdirTemp("", "cove-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r, err := startRedis(ctx, o.redis, filepath.Join(dir, "redis"), o.patience)
	if err != nil {
		return err
	}
	defer r.stop()
	n := &nodes{clusterOptions: o, dir: dir, redis: r}
	defer func() {
		for _, h := range slices.Backward(n.homes) {
			err = errors.Join(err, h.end(ctx))
		}
	}()
	return do(n)
}

// lone starts a server that is alone, as those of the part about servers are.
func (n *nodes) lone(ctx context.Context, name string, env ...string) (*served, error) {
	o := n.restartOptions
	o.env = slices.Concat(o.env, []string{"COVE_LOG_LEVEL=info"}, env)
	h := newHome(o, filepath.Join(n.dir, name))
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(h.dir, "config.yaml"), []byte(serverSettings), 0o600); err != nil {
		return nil, err
	}
	n.homes = append(n.homes, h)
	return &served{serverOptions: serverOptions{restartOptions: o}, home: h}, h.start(ctx)
}

// node starts a server that is a node of the cluster.
func (n *nodes) node(ctx context.Context, name string, env ...string) (*served, error) {
	return n.lone(ctx, name, append([]string{
		"REDIS_URL=" + n.redis.url(), "COVE_NODE_ID=" + name, "COVE_CLUSTER_SECRET=only-the-nodes-of-this-benchmark-know-it",
	}, env...)...)
}

// timed compares a node with a server that is alone, and two nodes with each other.
// What is opened on the first node is there, since no other one has come yet.
func (n *nodes) timed(ctx context.Context) (rows []row, err error) {
	lone, err := n.lone(ctx, "lone")
	if err != nil {
		return nil, err
	}
	owner, err := n.node(ctx, "owner")
	if err != nil {
		return nil, err
	}
	created, err := n.createRow(ctx, lone, owner)
	if err != nil {
		return nil, err
	}
	err = owner.inSessions(ctx, 1, cove.Spec{}, func(near *client.Client, ids []cove.ID) error {
		other, err := n.node(ctx, "other")
		if err != nil {
			return err
		}
		return other.with(func(far *client.Client) error {
			times, err := measure.Race(ctx, n.rounds,
				measure.Contender{Name: "through the owner", Run: func(ctx context.Context) error { return execTrue(ctx, near, ids[0]) }},
				measure.Contender{Name: "through another node", Run: func(ctx context.Context) error { return execTrue(ctx, far, ids[0]) }})
			if err == nil {
				rows = rowsOver(1.5, times[0], times[1:], "exec `true` in a live session through a node that has not got it ÷ through the one that has")
			}
			return err
		})
	})
	return append(rows, created), err
}

// createRow compares a session that is opened on a node with one on a server that
// has its records in a file. Closing them is not timed.
func (n *nodes) createRow(ctx context.Context, lone, node *served) (created row, err error) {
	err = lone.with(func(alone *client.Client) error {
		return node.with(func(among *client.Client) error {
			times, err := measure.Race(ctx, n.creates, opening("alone", alone), opening("with Redis", among))
			if err == nil {
				created = rowsOver(1.5, times[0], times[1:], "session created on a node with Redis ÷ on a server without")[0]
			}
			return err
		})
	})
	return created, err
}

// opening is the contender that opens a session.
func opening(name string, c *client.Client) measure.Contender {
	var opened []cove.ID
	return measure.Contender{
		Name: name,
		Run: func(ctx context.Context) error {
			s, err := c.Sessions().Open(ctx, cove.OpenRequest{})
			if err == nil {
				opened = append(opened, s.ID)
			}
			return err
		},
		After: func(ctx context.Context) error {
			err := closeAll(ctx, c, opened)
			opened = opened[:0]
			return err
		},
	}
}

// noneRow is that of execs which must not ask Redis for anything. What they asked for
// is told.
func noneRow(execs int, commands []string) row {
	r := row{
		name:     fmt.Sprintf("commands to Redis during %d execs through the node that has the session", execs),
		measured: fmt.Sprintf("%d commands", len(commands)), baseline: "none", value: float64(len(commands)), must: 0,
	}
	if len(commands) > 0 {
		r.measured += fmt.Sprintf(", such as %s", commands[0])
	}
	return r
}
