//go:build !lean

package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
)

// grantFlags say what a key may ask of data.
type grantFlags struct {
	datasets, tables, columns []string
	maxRows                   int
	sqlOnly                   bool
}

func (f *grantFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringSliceVar(&f.datasets, "dataset", nil, "a dataset that it may ask, by its `id`; all if not given; may be repeated")
	fs.StringSliceVar(&f.tables, "table", nil, "a table that it may ask, as `dataset.table`; may be repeated")
	fs.StringArrayVar(&f.columns, "columns", nil, "the columns that it sees of a table, as `dataset.table=a,b`; may be repeated")
	fs.IntVar(&f.maxRows, "max-rows", 0, "the `number` of rows in one answer; 0 means no bound of its own")
	fs.BoolVar(&f.sqlOnly, "sql-only", false, "it may ask in SQL, and not in Python")
}

func (f *grantFlags) grant() (cove.DataGrant, error) {
	g := cove.DataGrant{Datasets: f.datasets, Tables: f.tables, MaxRows: f.maxRows, SQLOnly: f.sqlOnly}
	if f.maxRows < 0 || f.maxRows > cove.MaxRunRows {
		return g, cove.InvalidField("--max-rows", "%d is out of range; use 1 to %d", f.maxRows, cove.MaxRunRows)
	}
	for _, t := range f.tables {
		if set, name, ok := strings.Cut(t, "."); !ok || set == "" || name == "" {
			return g, cove.InvalidField("--table", "%.80q is not dataset.table", t)
		}
	}
	for _, text := range f.columns {
		table, list, ok := strings.Cut(text, "=")
		set, name, dotted := strings.Cut(table, ".")
		if !ok || !dotted || set == "" || name == "" || list == "" {
			return g, cove.InvalidField("--columns", "%.80q is not dataset.table=a,b", text)
		}
		if g.Columns == nil {
			g.Columns = map[string][]string{}
		}
		g.Columns[table] = append(g.Columns[table], strings.Split(list, ",")...)
	}
	return g, nil
}
