package chat

import (
	"encoding/json"
	"iter"

	"github.com/cove-sandbox/cove"
)

// Bounds on what a model is told at once.
const (
	maxTold     = 16 << 10 // bytes of rows
	maxPrinted  = 2 << 10  // bytes of what a program printed
	maxDatasets = 100
	maxTables   = 50
	maxColumns  = 200 // of one table
	maxSamples  = 3
)

// toldRun is what a model reads of a run.
type toldRun struct {
	Status    string            `json:"status"`
	Error     *toldFault        `json:"error,omitempty"`
	Columns   []string          `json:"columns,omitempty"`
	Types     []string          `json:"types,omitempty"`
	Rows      []json.RawMessage `json:"rows,omitempty"`
	RowCount  int               `json:"row_count"`
	Truncated bool              `json:"truncated,omitempty"`
	Note      string            `json:"note,omitempty"`
	Stdout    string            `json:"stdout,omitempty"`
	Stderr    string            `json:"stderr,omitempty"`
}

type toldFault struct {
	Type    string `json:"type,omitempty"`
	Message string `json:"message"`
	Rule    string `json:"rule,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

// told is what a model reads of a run, or of a request that made none.
func told(fault *cove.RunError, a *cove.RunAnswer) string {
	out := toldRun{Status: "error"}
	if fault != nil {
		out.Error = &toldFault{Type: fault.Type, Message: cut(fault.Message, maxPrinted)}
		if r := fault.Refusal; r != nil {
			out.Error.Rule, out.Error.Line, out.Error.Column = r.Rule, r.Line, r.Column
		}
	}
	if a != nil {
		out.Status, out.RowCount, out.Truncated = a.Status, a.RowCount, a.Truncated
		out.Columns, out.Types = a.Columns[:min(len(a.Columns), maxColumns)], a.Types[:min(len(a.Types), maxColumns)]
		out.Stdout, out.Stderr = cut(a.Stdout, maxPrinted), cut(a.Stderr, maxPrinted)
		out.Rows = upTo(maxTold, a.Rows)
		if len(out.Rows) < len(a.Rows) {
			out.Truncated = true
			out.Note = "Not all rows are shown here: the result is too long. Aggregate, or select fewer columns."
		}
	}
	return inJSON(out)
}

// upTo returns the first rows that have so many bytes together.
func upTo(most int, rows []json.RawMessage) []json.RawMessage {
	for i, r := range rows {
		if most -= len(r); most < 0 {
			return rows[:i]
		}
	}
	return rows
}

type toldDataset struct {
	ID          string      `json:"id"`
	Description string      `json:"description,omitempty"`
	Tables      []toldTable `json:"tables"`
	Note        string      `json:"note,omitempty"`
}

type toldTable struct {
	Name    string            `json:"name"`
	Columns []cove.Column     `json:"columns,omitempty"`
	Rows    *int64            `json:"row_count,omitempty"`
	Sample  []json.RawMessage `json:"sample_rows,omitempty"`
	Problem string            `json:"problem,omitempty"`
	Note    string            `json:"note,omitempty"`
}

// toldDatasets is what a model reads of all datasets.
func toldDatasets(all iter.Seq2[*cove.Dataset, error]) (string, error) {
	var out struct {
		Datasets []toldDataset `json:"datasets"`
		Note     string        `json:"note,omitempty"`
	}
	out.Datasets = []toldDataset{}
	for d, err := range all {
		if err != nil {
			return "", err
		}
		if len(out.Datasets) == maxDatasets {
			out.Note = "There are more datasets than are shown here."
			break
		}
		one := brief(d)
		for _, t := range d.Tables[:min(len(d.Tables), maxTables)] {
			one.Tables = append(one.Tables, toldTable{Name: t.Name, Problem: cut(t.Problem, maxPrinted)})
		}
		out.Datasets = append(out.Datasets, one)
	}
	return inJSON(out), nil
}

// toldSchema is what a model reads of one dataset.
func toldSchema(d *cove.Dataset) string {
	out := brief(d)
	room := maxTold
	for _, t := range d.Tables[:min(len(d.Tables), maxTables)] {
		one := toldTable{Name: t.Name, Columns: t.Columns[:min(len(t.Columns), maxColumns)], Problem: cut(t.Problem, maxPrinted)}
		if t.Problem == "" {
			one.Rows = &t.Rows
		}
		if len(t.Columns) > maxColumns {
			one.Note = "There are more columns than are shown here."
		}
		one.Sample = upTo(room, t.Sample[:min(len(t.Sample), maxSamples)])
		for _, r := range one.Sample {
			room -= len(r)
		}
		out.Tables = append(out.Tables, one)
	}
	return inJSON(out)
}

func brief(d *cove.Dataset) toldDataset {
	out := toldDataset{ID: d.ID, Description: cut(d.Description, maxPrinted), Tables: []toldTable{}}
	if len(d.Tables) > maxTables {
		out.Note = "There are more tables than are shown here."
	}
	return out
}
