package duckdb

import (
	"encoding/json"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// The protocol's own words for what is loaded and answered, after it was checked.
type (
	// Column is one of a table or of a result.
	Column = ask.Column
	// Loaded is what became of a file.
	Loaded = ask.Loaded
	// Tree is what the engine's parser made of a text.
	Tree = ask.Tree
	// Fault is why the engine did not do what it was asked. It is the cause of the
	// error that a method of [Helper] returns then.
	Fault = ask.Fault
	// Format says how a file is read.
	Format = ask.Format
)

// The formats.
const (
	CSV     = ask.CSV
	Parquet = ask.Parquet
	JSON    = ask.JSON
)

// Options is what a helper may use.
type Options struct {
	Path    string     // of the executable, inside
	Memory  cove.Bytes // all that it may have; the least is 64 MiB
	Threads int        // 0 means 1
}

// Table is a file that becomes a table.
type Table struct {
	Schema  string // of the dataset; "" is main
	Name    string
	Path    string // inside, absolute
	Format  Format
	Columns []string // those to load; none means all
	Stamp   string   // changes with the file, which then is loaded again
}

// Question is a text that may be one SELECT.
type Question struct {
	SQL      string
	Schema   string // where tables are that the text does not qualify
	MaxRows  int
	MaxBytes int64 // of the rows as JSON, or of a frame's file
}

// Rows is a result.
type Rows struct {
	Answered

	Rows []json.RawMessage // each a JSON array with a value for each column
}

// Answered is what is said of a result, and of a frame.
type Answered struct {
	Columns []Column
	Count   int
	// Truncated says that rows or bytes were left out.
	Truncated bool
	// Loaded says that tables were loaded since the question before, which took Load.
	Loaded bool
	Load   time.Duration
	Query  time.Duration // as the helper says
}
