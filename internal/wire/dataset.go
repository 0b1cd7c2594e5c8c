package wire

import (
	"encoding/json"
	"time"

	"github.com/cove-sandbox/cove"
)

// Dataset is a set of files that questions can be asked of. Its schema has what
// is in them too.
type Dataset struct {
	ID          string    `json:"id"`
	Description string    `json:"description,omitempty"`
	Tables      []Table   `json:"tables"`
	SizeBytes   int64     `json:"size_bytes"`
	ChangedAt   time.Time `json:"changed_at,omitzero"`
}

// Table is one file of a dataset.
type Table struct {
	Name       string            `json:"name"`
	File       string            `json:"file" jsonschema:"relative to the dataset"`
	Format     string            `json:"format" jsonschema:"csv, parquet or json"`
	SizeBytes  int64             `json:"size_bytes"`
	Columns    []cove.Column     `json:"columns,omitempty"`
	RowCount   int64             `json:"row_count,omitempty"`
	SampleRows []json.RawMessage `json:"sample_rows,omitempty" jsonschema:"lists of values in the order of the columns"`
	Problem    string            `json:"problem,omitempty" jsonschema:"why nobody can ask it"`
}

// DatasetOf returns the form of d.
func DatasetOf(d *cove.Dataset) Dataset {
	w := Dataset{ID: d.ID, Description: d.Description, Tables: make([]Table, len(d.Tables)), SizeBytes: int64(d.Size), ChangedAt: d.ChangedAt}
	for i, t := range d.Tables {
		w.Tables[i] = Table{
			Name: t.Name, File: t.File, Format: t.Format, SizeBytes: int64(t.Size),
			Columns: t.Columns, RowCount: t.Rows, SampleRows: t.Sample, Problem: t.Problem,
		}
	}
	return w
}

// Cove returns the platform's own form.
func (w Dataset) Cove() *cove.Dataset {
	d := &cove.Dataset{ID: w.ID, Description: w.Description, Size: cove.Bytes(w.SizeBytes), ChangedAt: w.ChangedAt}
	for _, t := range w.Tables {
		d.Tables = append(d.Tables, cove.Table{
			Name: t.Name, File: t.File, Format: t.Format, Size: cove.Bytes(t.SizeBytes),
			Columns: t.Columns, Rows: t.RowCount, Sample: t.SampleRows, Problem: t.Problem,
		})
	}
	return d
}
