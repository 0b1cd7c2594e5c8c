//go:build !lean

package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func (a *app) keyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make, list and revoke the keys of callers",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.keyCreateCommand(), a.keyListCommand(), a.keyRevokeCommand())
	return cmd
}

func (a *app) keyCreateCommand() *cobra.Command {
	var req cove.KeyRequest
	var scopes []string
	var ttl string
	var data grantFlags
	var forE2B, forMSB bool
	cmd := &cobra.Command{
		Use:   "create [flags]",
		Short: "Make a key and print its secret, this once",
		Long: `Makes a key and prints its secret. Only a hash of it is kept, so that it cannot
be shown again.`,
		Example: `  cove key create --name ci --scope exec --scope sandbox:write --ttl 720h
  cove key create --e2b --name agents --scope sandbox:read,sandbox:write,exec,files:read,files:write
  cove key create --msb --namespace team1 --ttl 24h --scope exec --scope sandbox:write
  cove key create --name analyst --scope runs --dataset ecommerce --columns ecommerce.orders=id,status`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			for _, s := range scopes {
				req.Scopes = append(req.Scopes, cove.Scope(s))
			}
			if req.TTL, err = span("--ttl", ttl); err != nil {
				return err
			}
			if req.Limits.Data, err = data.grant(); err != nil {
				return err
			}
			switch {
			case forE2B:
				req.Form = cove.KeyE2B
			case forMSB:
				req.Form = cove.KeyMicrosandbox
			}
			if err := req.Validate(); err != nil {
				return err
			}
			return a.admin(cmd, func(ctx context.Context, admin cove.Admin) error {
				k, secret, err := admin.CreateKey(ctx, req)
				if err != nil {
					return err
				}
				return a.print(wire.NewKey{Key: wire.KeyOf(k), Secret: secret}, func(w io.Writer) error {
					_, err := fmt.Fprintln(w, escape(secret))
					return err
				})
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&req.Name, "name", "", "a `word` to know it by")
	fs.StringVar(&req.Tenant, "tenant", "", "whose things it sees, by `name` (default \"default\")")
	fs.StringSliceVar(&scopes, "scope", nil, "`scope`: *, sandbox:read, sandbox:write, exec, files:read, files:write, runs, templates, admin, metrics, trusted; repeatable")
	fs.StringVar(&ttl, "ttl", "", "the `time` it is good for, such as 720h; if not given, it does not expire, and with --msb after 24h")
	fs.BoolVar(&forE2B, "e2b", false, "give the secret the form that E2B's SDKs ask for (e2b_…)")
	fs.BoolVar(&forMSB, "msb", false, "give the secret the form of microsandbox's clients (msb_…)")
	cmd.MarkFlagsMutuallyExclusive("e2b", "msb")
	fs.StringVar(&req.Limits.Namespace, "namespace", "", "the one `namespace` of sandboxes that a key with --msb reaches (default all)")
	fs.Float64Var(&req.Limits.RatePerSecond, "rate", 0, "the `number` of requests a second; 0 means no bound")
	fs.IntVar(&req.Limits.Concurrent, "concurrent", 0, "the `number` of requests at once; 0 means no bound")
	fs.IntVar(&req.Limits.Sessions, "sessions", 0, "the `number` of live sandboxes at once; 0 means no bound")
	data.add(cmd)
	fs.StringVar(&req.IdempotencyKey, "idempotency-key", "", "the same `key` makes no second one")
	return cmd
}

func (a *app) keyListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List keys",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.admin(cmd, func(ctx context.Context, admin cove.Admin) error { return a.listKeys(ctx, admin) })
		},
	}
}

func (a *app) listKeys(ctx context.Context, admin cove.Admin) error {
	rows := [][]string{}
	now := time.Now()
	for k, err := range admin.Keys(ctx) {
		if err != nil {
			return err
		}
		if a.json {
			if err := a.printJSON(wire.KeyOf(k)); err != nil {
				return err
			}
			continue
		}
		scopes := make([]string, len(k.Scopes))
		for i, s := range k.Scopes {
			scopes[i] = string(s)
		}
		rows = append(rows, []string{string(k.ID), k.Name, k.Tenant, strings.Join(scopes, ","), keyState(now, k), ago(now, k.CreatedAt)})
	}
	if a.json {
		return nil
	}
	return table(a.sys.Stdout, []string{"ID", "NAME", "TENANT", "SCOPES", "STATUS", "AGE"}, rows)
}

func keyState(now time.Time, k *cove.Key) string {
	switch {
	case !k.RevokedAt.IsZero():
		return "revoked"
	case k.ExpiresAt.IsZero():
		return "good"
	case !now.Before(k.ExpiresAt):
		return "expired"
	}
	return "good for " + coarse(k.ExpiresAt.Sub(now))
}

func (a *app) keyRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Make a key open nothing any more",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := cove.ID(args[0])
			if !id.Valid() {
				return cove.InvalidField("ID", "%.80q is not the id of a key; cove key ls shows them", args[0])
			}
			return a.admin(cmd, func(ctx context.Context, admin cove.Admin) error {
				if err := admin.RevokeKey(ctx, id); err != nil {
					return err
				}
				return a.print(map[string]cove.ID{"key_id": id}, func(w io.Writer) error { return printID(w, id) })
			})
		},
	}
}

// admin does something as the operator of the lasting platform.
func (a *app) admin(cmd *cobra.Command, do func(ctx context.Context, admin cove.Admin) error) (err error) {
	p, err := a.lasting(cmd)
	if err != nil {
		return err
	}
	defer func() { err = joinTidy(err, p.close()) }()
	return do(cmd.Context(), p.Admin())
}
