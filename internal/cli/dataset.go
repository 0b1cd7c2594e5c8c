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
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/dataset/sample"
	"github.com/cove-sandbox/cove/internal/wire"
)

func (a *app) datasetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dataset",
		Short: "See what questions can be asked of",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.datasetListCommand(), a.datasetSchemaCommand(), a.datasetGenerateCommand())
	return cmd
}

func (a *app) datasetListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List datasets",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withData(cmd, cove.Spec{}, a.listDatasets)
		},
	}
}

// withData does something with the platform that has the data: a server, or this
// process.
func (a *app) withData(cmd *cobra.Command, spec cove.Spec, do func(context.Context, link) error) (err error) {
	ctx := cmd.Context()
	p, err := a.reachOnce(cmd, spec, func(cfg config.Config) (*daemon.Local, error) {
		return daemon.OneShotData(ctx, cfg, spec.Provider, nil)
	})
	if err != nil {
		return err
	}
	defer func() { err = joinTidy(err, p.close()) }()
	return do(ctx, p)
}

func (a *app) listDatasets(ctx context.Context, p link) error {
	rows := [][]string{}
	now := time.Now()
	for d, err := range p.Datasets().List(ctx, cove.DatasetFilter{}) {
		if err != nil {
			return err
		}
		if a.json {
			if err := a.printJSON(wire.DatasetOf(d)); err != nil {
				return err
			}
			continue
		}
		names := make([]string, len(d.Tables))
		for i, t := range d.Tables {
			names[i] = t.Name
		}
		rows = append(rows, []string{d.ID, strings.Join(names, ","), d.Size.String(), ago(now, d.ChangedAt), d.Description})
	}
	if a.json {
		return nil
	}
	if len(rows) == 0 && !p.remote && p.cfg.Datasets == "" {
		a.note("there are none: COVE_DATASETS is not set; cove dataset generate makes some to try")
	}
	return table(a.sys.Stdout, []string{"ID", "TABLES", "SIZE", "CHANGED", "DESCRIPTION"}, rows)
}

func (a *app) datasetSchemaCommand() *cobra.Command {
	var provider string
	cmd := &cobra.Command{
		Use:   "schema ID",
		Short: "Show the columns, the rows and a sample of each table",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withData(cmd, cove.Spec{Provider: provider}, func(ctx context.Context, p link) error {
				d, err := p.Datasets().Schema(ctx, args[0])
				if err != nil {
					return err
				}
				return a.print(wire.DatasetOf(d), func(w io.Writer) error { return showSchema(w, d) })
			})
		},
	}
	cmd.Flags().StringVar(&provider, "provider", "", "the `name` of the provider whose sandbox looks, in this process (SANDBOX_PROVIDER)")
	return cmd
}

func showSchema(w io.Writer, d *cove.Dataset) error {
	for i, t := range d.Tables {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if err := showTable(w, d.ID, t); err != nil {
			return err
		}
	}
	return nil
}

func showTable(w io.Writer, id string, t cove.Table) error {
	name := escape(id + "." + t.Name)
	if t.Problem != "" {
		_, err := fmt.Fprintf(w, "%s (%s): cannot be asked: %s\n", name, escape(t.File), escape(t.Problem))
		return err
	}
	if _, err := fmt.Fprintf(w, "%s (%s, size %s, %s rows)\n", name, escape(t.File), t.Size, strconv.FormatInt(t.Rows, 10)); err != nil {
		return err
	}
	rows := make([][]string, len(t.Columns))
	head := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		rows[i], head[i] = []string{c.Name, c.Type}, c.Name
	}
	if err := table(w, []string{"COLUMN", "TYPE"}, rows); err != nil || len(t.Sample) == 0 {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return gridOf(head, t.Sample).table(w)
}

func (a *app) datasetGenerateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "generate DIRECTORY",
		Short: "Make three small datasets to try things on",
		Long: `Writes three datasets, each time the same: ecommerce with orders, order_items and
inventory, support with tickets, and iot with sensors. COVE_DATASETS can name the
directory then.`,
		Args: arguments(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := sample.Write(args[0]); err != nil {
				return cove.Wrap(cove.Unavailable, err, "the datasets cannot be written to %.200s", args[0])
			}
			return a.print(map[string]string{"datasets": args[0]}, func(w io.Writer) error {
				_, err := io.WriteString(w, escape(args[0])+"\n")
				return err
			})
		},
	}
}
