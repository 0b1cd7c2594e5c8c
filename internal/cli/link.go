//go:build !lean

package cli

import (
	"context"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
)

func (a *app) urlCommand() *cobra.Command {
	var put bool
	var ttl string
	cmd := &cobra.Command{
		Use:   "url [flags] ID PATH",
		Short: "Make a link to a file, for somebody without a key",
		Long: `Makes a link that reads a file of a sandbox, or with --put replaces it. Whoever has
it needs no key. It is over when its time is up, when the sandbox ends, and when
the key that it was made with is revoked. Only cove serve answers links.`,
		Example: `  curl "$(cove sandbox url ID report.csv)"
  curl -T data.csv "$(cove sandbox url --put --ttl 1h ID data.csv)"`,
		Args: arguments(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			good, err := span("--ttl", ttl)
			if err != nil {
				return err
			}
			return a.withSession(cmd, args[0], func(ctx context.Context, p link, id cove.ID) error {
				req := cove.FileLink{Session: id, Path: args[1], TTL: good}
				if put {
					return a.printLink(p.Links().Upload(ctx, req))
				}
				return a.printLink(p.Links().Download(ctx, req))
			})
		},
	}
	cmd.Flags().BoolVar(&put, "put", false, "the link replaces the file")
	cmd.Flags().StringVar(&ttl, "ttl", "", "the `time` it is good for, up to 24h (default 15m)")
	return cmd
}

func (a *app) portCommand() *cobra.Command {
	var ttl string
	cmd := &cobra.Command{
		Use:   "port [flags] ID PORT",
		Short: "Make a link to what listens on a port inside, for a browser",
		Long: `Makes a link that shows what listens on a port of a sandbox, on a host name that no
other port and no other sandbox has. The server must have COVE_PREVIEW_ADDR or
COVE_PREVIEW_DOMAIN.`,
		Example: "  cove sandbox port --ttl 8h ID 3000",
		Args:    arguments(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			port, err := strconv.Atoi(args[1])
			if err != nil {
				return cove.InvalidField("PORT", "%.40q is not a port; use 1 to 65535", args[1])
			}
			good, err := span("--ttl", ttl)
			if err != nil {
				return err
			}
			return a.withSession(cmd, args[0], func(ctx context.Context, p link, id cove.ID) error {
				return a.printLink(p.Links().Port(ctx, cove.PortLink{Session: id, Port: port, TTL: good}))
			})
		},
	}
	cmd.Flags().StringVar(&ttl, "ttl", "", "the `time` it is good for, up to 24h (default 1h)")
	return cmd
}

func (a *app) loginLinkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "login-link",
		Short: "Make a link that signs a browser in, once",
		Long: `Makes a link that signs a browser in as you: as the key that is shown with --url,
or as the user of this machine. It is good once, within five minutes.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			p, err := a.lasting(cmd)
			if err != nil {
				return err
			}
			defer func() { err = joinTidy(err, p.close()) }()
			return a.printLink(p.Links().Login(cmd.Context(), 0))
		},
	}
}

func (a *app) printLink(l *cove.Link, err error) error {
	if err != nil {
		return err
	}
	return a.print(l, func(w io.Writer) error {
		_, err := io.WriteString(w, escape(l.URL)+"\n")
		return err
	})
}
