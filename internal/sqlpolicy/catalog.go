package sqlpolicy

import (
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// Catalog is what there is to ask.
type Catalog struct {
	// Dataset has the tables that a statement names without a dataset. Empty are
	// those of no dataset.
	Dataset string
	Tables  []Table
}

// Table is a table of a dataset. One of no dataset is the caller's own file: no
// grant is needed for it.
type Table struct {
	Dataset string
	Name    string
	// Columns in their order. None means that they are not known.
	Columns []string
}

// Granted returns the tables that the grant shows, with the columns that it shows:
// what may be loaded for who holds it. The others are, for them, not there.
func (c Catalog) Granted(g cove.DataGrant) Catalog {
	out := Catalog{Dataset: c.Dataset}
	for _, t := range c.Tables {
		columns, bounded := t.shown(g)
		if !t.granted(g) || bounded && len(columns) == 0 {
			continue
		}
		out.Tables = append(out.Tables, Table{Dataset: t.Dataset, Name: t.Name, Columns: columns})
	}
	return out
}

// granted reports whether every list of the grant has the table. A name is spelt as
// the dataset spells it, as in [cove.DataGrant.Shows].
func (t Table) granted(g cove.DataGrant) bool {
	if t.Dataset == "" {
		return true
	}
	if reserved(t.Dataset) {
		return false
	}
	return (g.Datasets == nil || slices.Contains(g.Datasets, t.Dataset)) &&
		(g.Tables == nil || slices.Contains(g.Tables, t.String()))
}

// shown returns the columns that the grant shows, and whether it has a list of them.
// With columns that are not known, they are those of the list.
func (t Table) shown(g cove.DataGrant) (columns []string, bounded bool) {
	listed, bounded := t.listed(g)
	switch {
	case !bounded:
		return t.Columns, false
	case len(t.Columns) == 0:
		return listed, true
	}
	for _, name := range t.Columns {
		if hasName(listed, name) {
			columns = append(columns, name)
		}
	}
	return columns, true
}

// listed returns the columns that the grant names for the table, if it has an entry
// for it. The names need not be spelt alike: one in another case must not show more.
func (t Table) listed(g cove.DataGrant) ([]string, bool) {
	if t.Dataset == "" {
		return nil, false
	}
	for name, columns := range g.Columns {
		if same(name, t.String()) {
			return columns, true
		}
	}
	return nil, false
}

// String is dataset.table, as grants and statements write it.
func (t Table) String() string {
	if t.Dataset == "" {
		return t.Name
	}
	return t.Dataset + "." + t.Name
}

// find returns the table that the engine finds by these names.
func (c Catalog) find(dataset, name string) (Table, bool) {
	if dataset == "" {
		dataset = c.Dataset
	} else if same(dataset, "main") {
		dataset = ""
	}
	for _, t := range c.Tables {
		if same(t.Dataset, dataset) && same(t.Name, name) {
			return t, true
		}
	}
	return Table{}, false
}

// reserved reports whether the name means something of the engine's own where a
// dataset could stand: a database, or a schema.
func reserved(name string) bool {
	switch lower(name) {
	case "information_schema", "main", "memory", "pg_catalog", "system", "temp":
		return true
	default:
		return false
	}
}

// engines reports whether the engine has, or may one day have, a table or view of
// its own by this name, which anybody finds without a schema.
func engines(name string) bool {
	name = lower(name)
	for _, prefix := range []string{"duckdb_", "pg_", "pragma_", "sqlite_", "__"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// lower is the lower case of a name as the engine compares names: ASCII only.
func lower(name string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, name)
}

func same(a, b string) bool { return lower(a) == lower(b) }

func hasName(list []string, name string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return same(s, name) })
}
