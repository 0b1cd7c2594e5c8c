//go:build !lean

package cli

import (
	"context"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func (a *app) nodeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "See the servers of a cluster, and empty one",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.nodeListCommand(), a.nodeDrainCommand(), a.nodeUncordonCommand())
	return cmd
}

// withNodes does something with the nodes of the lasting platform.
func (a *app) withNodes(cmd *cobra.Command, do func(ctx context.Context, all cove.Nodes) error) (err error) {
	p, err := a.lasting(cmd)
	if err != nil {
		return err
	}
	defer func() { err = joinTidy(err, p.close()) }()
	return do(cmd.Context(), p.Nodes())
}

func (a *app) nodeListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the servers of the cluster",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.withNodes(cmd, a.listNodes) },
	}
}

func (a *app) listNodes(ctx context.Context, all cove.Nodes) error {
	list, err := all.List(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{}
	now := time.Now()
	for _, n := range list {
		if a.json {
			if err := a.printJSON(wire.NodeOf(n)); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{
			n.ID, string(n.State), n.Address, ofBound(strconv.Itoa(n.Used.Sessions), n.Capacity.Sessions > 0, strconv.Itoa(n.Capacity.Sessions)),
			ofBound(n.Used.Memory.String(), n.Capacity.Memory > 0, n.Capacity.Memory.String()), strconv.Itoa(n.Pool), n.Version, ago(now, n.SeenAt),
		})
	}
	if a.json {
		return nil
	}
	return table(a.sys.Stdout, []string{"NODE", "STATE", "ADDRESS", "SESSIONS", "MEMORY", "POOL", "VERSION", "SEEN"}, rows)
}

// ofBound is an amount, and what it can be at most where there is such a bound.
func ofBound(used string, bounded bool, most string) string {
	if !bounded {
		return used
	}
	return used + "/" + most
}

func (a *app) nodeDrainCommand() *cobra.Command {
	var wait bool
	var timeout string
	cmd := &cobra.Command{
		Use:   "drain [flags] NAME",
		Short: "Have a node take no new sandboxes and give away those that can move",
		Long: `Has a node take no new sandboxes, and give away those that can move: they are
stopped when they have nothing to do, and another node starts them when somebody
asks for that or uses one. One that a caller had stopped comes back by use only
where it was opened to wake. All others stay until they end. cove node uncordon takes it back.

With --wait it is over when the node has no sandbox left. When that takes too
long it exits with 124, and the node goes on to be drained.`,
		Example: "  cove node drain n2 --wait --timeout 30m",
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("timeout") && !wait {
				return cove.InvalidField("--timeout", "is for --wait; add that, or leave it out")
			}
			patience, err := span("--timeout", timeout)
			if err != nil {
				return err
			}
			return a.withNodes(cmd, func(ctx context.Context, all cove.Nodes) error {
				n, err := all.Drain(ctx, args[0])
				if err == nil && wait {
					n, err = a.drained(ctx, all, n, patience)
				}
				return a.printNode(n, err)
			})
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&wait, "wait", false, "wait until the node has no sandbox left")
	fs.StringVar(&timeout, "timeout", "10m", "with --wait, give up after this `time`")
	return cmd
}

func (a *app) nodeUncordonCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "uncordon NAME",
		Short: "Let a node take new sandboxes again",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withNodes(cmd, func(ctx context.Context, all cove.Nodes) error {
				return a.printNode(all.Uncordon(ctx, args[0]))
			})
		},
	}
}

func (a *app) printNode(n *cove.Node, err error) error {
	if err != nil {
		return err
	}
	return a.print(wire.NodeOf(*n), func(w io.Writer) error {
		_, err := io.WriteString(w, escape(n.ID)+"\n")
		return err
	})
}

// drainPace is how often somebody who waits looks at how far a node is.
const drainPace = time.Second

// drainWords is how often a node must have been heard of before its word counts. With
// the first it learns that it is being drained, and may have taken a sandbox just
// before.
const drainWords = 2

// drained waits until a node has no session with a sandbox, and tells a person at a
// terminal how many there are. n is the node as it was when it was told to be drained:
// what it said of itself is older than that.
func (a *app) drained(ctx context.Context, all cove.Nodes, n *cove.Node, patience time.Duration) (*cove.Node, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	look := time.NewTicker(drainPace)
	defer look.Stop()
	words, heard := 0, n.SeenAt
	for left := -1; ; {
		if n.State == cove.NodeGone {
			return nil, cove.Errorf(cove.Unavailable, "node %s is gone, and nobody knows what became of its %d sandboxes", n.ID, n.Used.Sessions).
				Remedy("see whether its server runs; cove node ls shows when it was last heard of")
		}
		if !n.SeenAt.Equal(heard) {
			words, heard = words+1, n.SeenAt
		}
		if n.Used.Sessions == 0 && words >= drainWords && n.State != cove.NodeAway { // one that starts knows of none yet
			return n, nil
		}
		if n.Used.Sessions != left {
			left = n.Used.Sessions
			a.progress("node %s has %d sandboxes left", n.ID, left)
		}
		select {
		case <-look.C:
		case <-late.C:
			return nil, cove.Errorf(cove.Timeout, "node %s still has %d sandboxes after %s; it goes on to be drained", n.ID, left, patience).
				Remedy("wait longer, or end them: cove sandbox ls shows those of your tenant")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		next, err := nodeNamed(ctx, all, n.ID)
		if err != nil {
			return nil, err
		}
		n = next
	}
}

// nodeNamed finds a node in the list.
func nodeNamed(ctx context.Context, all cove.Nodes, name string) (*cove.Node, error) {
	list, err := all.List(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(n cove.Node) bool { return n.ID == name })
	if i < 0 {
		return nil, cove.Errorf(cove.NotFound, "there is no node %.80q any more", name).Remedy("cove node ls shows those that there are")
	}
	return &list[i], nil
}
