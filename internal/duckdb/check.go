package duckdb

import (
	"encoding/json"
	"slices"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// same reports whether two tables are one, from the same file as it was.
func same(a, b Table) bool {
	return a.Schema == b.Schema && a.Name == b.Name && a.Path == b.Path && a.Format == b.Format && a.Stamp == b.Stamp &&
		slices.Equal(a.Columns, b.Columns)
}

// wire is tables in the protocol's words.
func wire(tables []Table) []ask.Table {
	out := make([]ask.Table, len(tables))
	for i, t := range tables {
		out[i] = ask.Table{Schema: t.Schema, Name: t.Name, Path: t.Path, Format: t.Format, Columns: t.Columns}
	}
	return out
}

// checkRequest refuses a question that no helper would take.
func checkRequest(r ask.Request) error {
	r.ID = 1
	if f := r.Check(); f != nil {
		return typed(cove.Errorf(cove.Invalid, "%s", f.Message), cove.RunSQLFailed)
	}
	return nil
}

// checkTables refuses tables that no helper would take.
func checkTables(tables []Table) error {
	r := ask.Request{ID: 1, Verb: ask.VerbLoad, Load: &ask.Load{Tables: wire(tables)}}
	if f := r.Check(); f != nil {
		return typed(cove.Errorf(cove.Invalid, "%s", f.Message), cove.RunInvalidInput)
	}
	return nil
}

// checkLoaded says what is wrong with an answer about tables, or "". Texts in it are
// made fit to be shown.
func checkLoaded(want []Table, got []Loaded, samples int) string {
	if len(got) != len(want) {
		return "it is about another number of tables"
	}
	for i := range got {
		t := &got[i]
		if t.Name != want[i].Name || t.Schema != want[i].Schema {
			return "it is about another table"
		}
		if t.Rows < 0 || len(t.Samples) > samples || int64(len(t.Samples)) > t.Rows {
			return "its rows cannot be counted"
		}
		t.Problem = clean(t.Problem)
		if why := checkColumns(t.Columns); why != "" {
			return why
		}
		for _, row := range t.Samples {
			if width(row) != len(t.Columns) {
				return "a row does not fit the columns"
			}
		}
	}
	return ""
}

func checkColumns(columns []Column) string {
	if len(columns) > ask.MaxColumns {
		return "it has too many columns"
	}
	for _, c := range columns {
		if len(c.Name) > maxName || len(c.Type) > maxType {
			return "the name or the type of a column is too long"
		}
	}
	return ""
}

// checkRows says what is wrong with a result, or "".
func checkRows(r *ask.Rows, q Question, frame bool) string {
	if r == nil || len(r.Columns) == 0 {
		return "it has no result"
	}
	if why := checkColumns(r.Columns); why != "" {
		return why
	}
	switch {
	case r.Count < 0 || r.Count > q.MaxRows, !frame && len(r.Rows) != r.Count, frame && len(r.Rows) != 0:
		return "its rows cannot be counted"
	case r.Cut != "" && r.Cut != ask.CutRows && r.Cut != ask.CutBytes && r.Cut != ask.CutCell:
		return "it is cut in no known way"
	}
	total := int64(0)
	for _, row := range r.Rows {
		if width(row) != len(r.Columns) {
			return "a row does not fit the columns"
		}
		total += int64(len(row))
	}
	if total > q.MaxBytes {
		return "it is longer than was asked for"
	}
	return ""
}

// width is how many values are in a JSON array, or −1 for what is none. The text is
// known to be JSON.
func width(row json.RawMessage) int {
	if len(row) == 0 || row[0] != '[' {
		return -1
	}
	depth, commas, empty, quoted := 0, 0, true, false
	for i := 0; i < len(row); i++ {
		c := row[i]
		switch {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted, empty = !quoted, false
		case quoted, c == ' ', c == '\n', c == '\t', c == '\r':
		case c == '[' || c == '{':
			empty = empty && depth == 0
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 1:
			commas++
		default:
			empty = false
		}
	}
	if empty {
		return 0
	}
	return commas + 1
}
