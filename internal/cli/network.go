//go:build !lean

package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// networkFlags say what a sandbox may reach from now on.
type networkFlags struct {
	allow, secrets []string
	none, open     bool
}

// network reads the flags. changed says whether there is anything to change.
func (f *networkFlags) network() (n cove.Network, changed bool, err error) {
	n.Secrets = f.secrets
	modes := 0
	if len(f.allow) > 0 {
		modes++
		n.Mode, n.Allow = cove.NetworkAllow, f.allow
	}
	if f.none {
		modes++
		n.Mode = cove.NetworkNone
	}
	if f.open {
		modes++
		n.Mode = cove.NetworkOpen
	}
	switch {
	case modes > 1:
		return n, false, cove.InvalidField("--allow", "goes with neither --none nor --open; choose one of them")
	case modes == 0 && len(f.secrets) > 0:
		return n, false, cove.InvalidField("--secret", "goes with --allow or --open")
	}
	return n, modes == 1, n.Validate()
}

func (a *app) networkCommand() *cobra.Command {
	var f networkFlags
	cmd := &cobra.Command{
		Use:   "network [flags] ID",
		Short: "Show or replace what a sandbox may reach",
		Long: `Shows what a sandbox may reach. With a flag it is replaced, also while programs
run; connections that are no longer allowed are ended. A sandbox that was
created without a network must be stopped to be given one.`,
		Example: `  cove sandbox network ID
  cove sandbox network --allow pypi.org --allow api.example.com:8443 ID
  cove sandbox network --none ID`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, changed, err := f.network()
			if err != nil {
				return err
			}
			return a.withSession(cmd, args[0], func(ctx context.Context, p link, id cove.ID) error {
				s, err := p.Sessions().Get(ctx, id)
				if err == nil && changed {
					s, err = p.Sessions().SetNetwork(ctx, id, n)
				}
				if err != nil {
					return err
				}
				return a.print(s.Spec.Network, func(w io.Writer) error { return printNetwork(w, s.Spec.Network) })
			})
		},
	}
	cmd.Flags().StringArrayVar(&f.allow, "allow", nil, "a `host[:port]` that may be reached, such as pypi.org or *.github.com; may be repeated")
	cmd.Flags().BoolVar(&f.none, "none", false, "nothing may be reached")
	cmd.Flags().BoolVar(&f.open, "open", false, "everything may be reached but private addresses")
	cmd.Flags().StringArrayVar(&f.secrets, "secret", nil, "the `name` of a credential of the operator's to put into requests; may be repeated")
	return cmd
}

func printNetwork(w io.Writer, n cove.Network) error {
	var b strings.Builder
	b.WriteString(string(n.Mode) + "\n")
	for _, host := range n.Allow {
		b.WriteString("allow " + host + "\n")
	}
	for _, name := range n.Secrets {
		b.WriteString("secret " + name + "\n")
	}
	_, err := io.WriteString(w, escapeLines(b.String()))
	return err
}

// lookAgain is how often a log that is followed is looked at.
const lookAgain = time.Second

func (a *app) connectionsCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "connections [flags] ID",
		Short: "Show what a sandbox tried to reach",
		Long: `Shows what a sandbox tried to reach, oldest first, and whether it was let
through. Only the newest are kept.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSession(cmd, args[0], func(ctx context.Context, p link, id cove.ID) error {
				return a.connections(ctx, p.Sessions(), id, follow)
			})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new ones")
	return cmd
}

func (a *app) connections(ctx context.Context, sessions cove.Sessions, id cove.ID, follow bool) error {
	if !a.json {
		if err := a.connectionRow("NUMBER", "TIME", "RESULT", "HOST", "SENT", "RECEIVED", "TOOK", "WHY"); err != nil {
			return err
		}
	}
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for after := int64(0); ; {
		for c, err := range sessions.Connections(ctx, id, after) {
			if err != nil {
				return err
			}
			if err := a.connection(c); err != nil {
				return err
			}
			after = c.Number
		}
		if !follow {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a *app) connection(c cove.Connection) error {
	if a.json {
		return a.printJSON(wire.ConnectionOf(c))
	}
	result := "refused"
	switch {
	case c.Allowed && c.Why != "":
		result = "failed"
	case c.Allowed:
		result = "allowed"
	}
	host := c.Host
	if c.Port != 0 {
		host += ":" + strconv.Itoa(c.Port)
	}
	if c.Protocol != "tcp" {
		host += " (" + c.Protocol + ")"
	}
	return a.connectionRow(strconv.FormatInt(c.Number, 10), stamp(c.At), result, host,
		c.Sent.String(), c.Received.String(), c.Took.Round(time.Millisecond).String(), c.Why)
}

// connectionRow writes a line at once: a log that is followed has no last one to
// fit the others to.
func (a *app) connectionRow(number, at, result, host, sent, received, took, why string) error {
	line := fmt.Sprintf("%-7s %-20s  %-7s  %-32s %9s %9s %8s  %s", number, at, result, escape(host), sent, received, took, escape(why))
	_, err := io.WriteString(a.sys.Stdout, strings.TrimRight(line, " ")+"\n")
	return err
}
