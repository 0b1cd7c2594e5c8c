//go:build !lean

package cli

import (
	"context"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func (a *app) tenantCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tenant",
		Short: "See what tenants use and cost, and bound them",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.tenantShowCommand(), a.tenantSetCommand())
	return cmd
}

func (a *app) tenantShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show what a tenant uses, its bounds and an estimate of its cost",
		Long: `Shows what a tenant uses and has used, and its bounds. Where the server knows
prices, it estimates what that costs. Without a name it is the tenant "default".

A key sees its own tenant with the scope sandbox:read; others need admin.`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := cove.DefaultTenant
			if len(args) > 0 {
				name = args[0]
			}
			return a.admin(cmd, func(ctx context.Context, admin cove.Admin) error {
				r, err := admin.Tenant(ctx, name)
				if err != nil {
					return err
				}
				return a.print(wire.TenantOf(r), func(w io.Writer) error { return showTenant(w, r) })
			})
		},
	}
}

// showTenant writes a report as a table.
func showTenant(w io.Writer, r *cove.TenantReport) error {
	bound := func(is bool, text string) string {
		if is {
			return text
		}
		return ""
	}
	q, u := r.Quota, r.Used
	rows := [][]string{
		{"sandboxes now", strconv.Itoa(r.Sessions), bound(q.Sessions > 0, strconv.Itoa(q.Sessions))},
		{"memory now", r.Memory.String(), bound(q.Memory > 0, q.Memory.String())},
		{"cpu seconds", decimal(u.CPU.Seconds(), 3), bound(q.CPUSeconds > 0, decimal(q.CPUSeconds, 3))},
		{"disk now", r.Disk.Sum().String(), bound(r.MaxDisk > 0, r.MaxDisk.String())},
		{"  snapshots", r.Disk.Snapshots.String(), ""},
		{"  archives", r.Disk.Archives.String(), ""},
		{"  output", r.Disk.Output.String(), ""},
		{"  artifacts", r.Disk.Artifacts.String(), ""},
		{"  workspaces", r.Disk.Workspaces.String(), ""},
		{"sandbox hours", decimal(u.Held.Hours(), 3), ""},
		{"memory GB hours", decimal(u.MemoryTime/time.Hour.Seconds(), 3), ""},
		{"executions", strconv.FormatInt(u.Executions, 10), ""},
		{"uploaded", u.Up.String(), ""},
		{"downloaded", u.Down.String(), ""},
	}
	if r.Cost != nil {
		rows = append(rows, []string{"estimate", decimal(r.Cost.Amount, 4) + " " + r.Cost.Currency, ""})
	}
	return table(w, []string{"TENANT " + r.Name, "USED", "BOUND"}, rows)
}

// decimal writes a number with up to so many digits after the point.
func decimal(f float64, digits int) string {
	text := strconv.FormatFloat(f, 'f', digits, 64)
	short, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return strconv.FormatFloat(short, 'f', -1, 64)
}

func (a *app) tenantSetCommand() *cobra.Command {
	var t cove.Tenant
	var memory, disk string
	cmd := &cobra.Command{
		Use:   "set [flags] NAME",
		Short: "Bound what a tenant may use",
		Long: `Bounds what a tenant may use, all its keys together. A bound that is not given
is none: the flags replace what was set before.`,
		Example: "  cove tenant set acme --sessions 10 --memory 16g --cpu-seconds 36000 --disk 20g",
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			t.Name = args[0]
			if memory != "" {
				if t.Quota.Memory, err = size("--memory", memory); err != nil {
					return err
				}
			}
			if disk != "" {
				if t.Quota.Disk, err = size("--disk", disk); err != nil {
					return err
				}
			}
			return a.admin(cmd, func(ctx context.Context, admin cove.Admin) error {
				if err := admin.SetTenant(ctx, t); err != nil {
					return err
				}
				return a.print(map[string]any{"name": t.Name, "quota": wire.TenantRequestOf(t).Quota}, func(w io.Writer) error {
					_, err := io.WriteString(w, escape(t.Name)+"\n")
					return err
				})
			})
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&t.Quota.Sessions, "sessions", 0, "the `number` of live sandboxes at once")
	fs.StringVar(&memory, "memory", "", "the memory of all of them together, such as `16g`")
	fs.StringVar(&disk, "disk", "", "what all of them may keep on the disk, such as `20g`; without it COVE_TENANT_DISK_MB holds")
	fs.Float64Var(&t.Quota.CPUSeconds, "cpu-seconds", 0, "the `seconds` of CPU time of all its programs, in all")
	return cmd
}
