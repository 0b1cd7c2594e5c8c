package cove

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

// Datasets are files of the operator's that questions can be asked of.
type Datasets interface {
	// List yields those that the caller may ask, by id: their files, and nothing
	// that takes a look into them.
	List(ctx context.Context, f DatasetFilter) iter.Seq2[*Dataset, error]
	// Schema looks into the files of one: columns, rows and a sample. One that the
	// caller may not ask is NotFound.
	Schema(ctx context.Context, id string) (*Dataset, error)
}

// DatasetFilter selects datasets.
type DatasetFilter struct {
	After string // continue after this id
	Limit int    // 0: all
}

// Dataset is a set of files, each a table.
type Dataset struct {
	ID          string    `json:"id"`
	Description string    `json:"description"`
	Tables      []Table   `json:"tables"`
	Size        Bytes     `json:"size"`
	ChangedAt   time.Time `json:"changed_at,omitzero"`
}

// Table is one file of a dataset.
type Table struct {
	Name    string            `json:"name"`
	File    string            `json:"file"`   // relative to the dataset
	Format  string            `json:"format"` // csv, parquet or json
	Size    Bytes             `json:"size"`
	Stamp   string            `json:"-"` // changes with the file, where somebody knows it
	Source  string            `json:"-"` // where it is on the host, if it is not in the dataset's directory
	Columns []Column          `json:"columns,omitempty"`
	Rows    int64             `json:"rows,omitempty"`
	Sample  []json.RawMessage `json:"sample,omitempty"`  // rows, in the order of the columns
	Problem string            `json:"problem,omitempty"` // why nobody can ask it
}

// Column is one column of a table.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"` // in the engine's words
}

// DataGrant bounds what a key may ask of data. The zero grant bounds nothing.
type DataGrant struct {
	Datasets []string            `json:"datasets,omitzero"`  // ids
	Tables   []string            `json:"tables,omitzero"`    // dataset.table
	Columns  map[string][]string `json:"columns,omitempty"`  // by dataset.table; tables without an entry show all of theirs
	MaxRows  int                 `json:"max_rows,omitempty"` // in one answer
	SQLOnly  bool                `json:"sql_only,omitempty"` // no Python
}

// IsZero reports whether the grant bounds nothing. A list of nothing is a bound.
func (g DataGrant) IsZero() bool {
	return g.Datasets == nil && g.Tables == nil && len(g.Columns) == 0 && g.MaxRows == 0 && !g.SQLOnly
}

// Shows returns what a grant shows of a dataset, or nil for nothing.
func (g DataGrant) Shows(d Dataset) *Dataset {
	if g.Datasets != nil && !slices.Contains(g.Datasets, d.ID) {
		return nil
	}
	if g.Tables != nil {
		d.Tables = slices.DeleteFunc(slices.Clone(d.Tables), func(t Table) bool { return !slices.Contains(g.Tables, d.ID+"."+t.Name) })
		if len(d.Tables) == 0 {
			return nil
		}
	}
	if len(g.Columns) > 0 {
		d.Tables = slices.DeleteFunc(slices.Clone(d.Tables), func(t Table) bool { return g.showsNothing(d.ID + "." + t.Name) })
	}
	return &d
}

// showsNothing reports whether the grant has a list of columns for a table, and none
// is on it. A name in another case must not show more.
func (g DataGrant) showsNothing(table string) bool {
	for name, columns := range g.Columns {
		if len(columns) == 0 && strings.EqualFold(name, table) {
			return true
		}
	}
	return false
}

// Validate reports the first field that is wrong: one that would bound nothing, or
// not what it seems to.
func (g DataGrant) Validate() error {
	if g.MaxRows < 0 || g.MaxRows > MaxRunRows {
		return InvalidField("limits.data.max_rows", "%d is out of range; use 1 to %d, or 0 for no bound", g.MaxRows, MaxRunRows)
	}
	for _, t := range g.Tables {
		if !isTableName(t) {
			return InvalidField("limits.data.tables", "%.80q is not dataset.table", t)
		}
	}
	seen := map[string]bool{}
	for _, t := range slices.Sorted(maps.Keys(g.Columns)) {
		if !isTableName(t) {
			return InvalidField("limits.data.columns", "%.80q is not dataset.table", t)
		}
		if seen[strings.ToLower(t)] {
			return InvalidField("limits.data.columns", "%.80q is there twice, in another case", t)
		}
		seen[strings.ToLower(t)] = true
	}
	return nil
}

func isTableName(s string) bool {
	set, table, ok := strings.Cut(s, ".")
	return ok && set != "" && table != ""
}

// DatasetSource knows the datasets of a node: which there are, and where. It
// looks into no file.
type DatasetSource interface {
	Datasets(ctx context.Context) ([]Dataset, error)
	// Dataset returns one and its directory on the host. NotFound.
	Dataset(ctx context.Context, id string) (d *Dataset, dir string, err error)
}
