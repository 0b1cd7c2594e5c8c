package ask

import "encoding/json"

// Version is that of the protocol. Both ends are built together, so another one is
// a broken installation.
const Version = 1

// Verb is what a request asks for.
type Verb string

// The verbs.
const (
	VerbOpen      Verb = "open"
	VerbDescribe  Verb = "describe"
	VerbLoad      Verb = "load"
	VerbQuery     Verb = "query"
	VerbFrame     Verb = "frame"
	VerbParse     Verb = "parse"
	VerbFunctions Verb = "functions"
	VerbStop      Verb = "stop"
)

// Request is one message to the executable. The field of its verb is set, and no
// other; functions has none.
type Request struct {
	ID       uint64    `json:"id"`
	Verb     Verb      `json:"verb"`
	Open     *Open     `json:"open,omitempty"`
	Describe *Describe `json:"describe,omitempty"`
	Load     *Load     `json:"load,omitempty"`
	Query    *Query    `json:"query,omitempty"`
	Frame    *Frame    `json:"frame,omitempty"`
	Parse    *Parse    `json:"parse,omitempty"`
	Stop     *Stop     `json:"stop,omitempty"`
}

// Open says what the engine may use.
type Open struct {
	// Memory is all that the process may have, in bytes. The engine gets a part of
	// it, and an error of its own before the process would reach the end.
	Memory int64 `json:"memory"`
	// Threads is how many the engine works with.
	Threads int `json:"threads"`
}

// Format says how a file is read.
type Format string

// The formats. CSV finds out what separates the fields, and JSON whether the file is
// one array or one document on each line.
const (
	CSV     Format = "csv"
	Parquet Format = "parquet"
	JSON    Format = "json"
)

// Table is a file that becomes a table.
type Table struct {
	Schema string `json:"schema,omitempty"` // empty is main
	Name   string `json:"name"`
	Path   string `json:"path"` // absolute
	Format Format `json:"format"`
	// Columns are those that are loaded, in this order; none means all.
	Columns []string `json:"columns,omitempty"`
}

// Describe looks into files and loads nothing.
type Describe struct {
	Tables  []Table `json:"tables"`
	Samples int     `json:"samples"` // rows of each
}

// Load reads the files into tables.
type Load struct {
	Tables []Table `json:"tables"`
}

// Query is a text that may be one SELECT.
type Query struct {
	SQL string `json:"sql"`
	// Schema is where tables are that the text does not qualify. Empty is main.
	// It is one that a loaded table has.
	Schema   string `json:"schema,omitempty"`
	MaxRows  int    `json:"max_rows"`
	MaxBytes int    `json:"max_bytes"` // of all rows as JSON
}

// Frame is a query whose rows go to a file.
type Frame struct {
	SQL     string `json:"sql"`
	Schema  string `json:"schema,omitempty"`
	MaxRows int    `json:"max_rows"`
	// MaxBytes bounds the file. Rows that do not fit are left out.
	MaxBytes int64 `json:"max_bytes"`
	// Path is absolute. There must be no such file; it appears only whole.
	Path string `json:"path"`
}

// Parse is a text to be read.
type Parse struct {
	SQL string `json:"sql"`
}

// Stop names the request that is to end.
type Stop struct {
	ID uint64 `json:"id"`
}

// Answer is the one message that a request gets, except stop. Either Fault is set or
// the field of its verb: Tables is that of load and describe, and Rows that of query
// and frame.
type Answer struct {
	ID        uint64     `json:"id"`
	Fault     *Fault     `json:"fault,omitempty"`
	Opened    *Opened    `json:"opened,omitempty"`
	Tables    []Loaded   `json:"tables,omitempty"`
	Rows      *Rows      `json:"rows,omitempty"`
	Tree      *Tree      `json:"tree,omitempty"`
	Functions []Function `json:"functions,omitempty"`
	// Nanoseconds is how long it took to serve it.
	Nanoseconds int64 `json:"ns,omitempty"`
}

// Opened says who is there.
type Opened struct {
	Protocol int    `json:"protocol"` // see Version
	Engine   string `json:"engine"`   // "v1.5.5"
}

// Loaded is what became of a file, in the order of the request.
type Loaded struct {
	Schema  string   `json:"schema,omitempty"`
	Name    string   `json:"name"`
	Columns []Column `json:"columns,omitempty"`
	Rows    int64    `json:"rows"`
	// Samples are the first rows, if it was described.
	Samples []json.RawMessage `json:"samples,omitempty"`
	// Problem says why there is no such table.
	Problem string `json:"problem,omitempty"`
	// Memory says that the problem is too little of it.
	Memory bool `json:"memory,omitempty"`
}

// Column has a name, which need not be the only one of its kind in a result, and a
// type in the engine's words.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Rows is the result of a query. A frame has no Rows and no more than Count.
type Rows struct {
	Columns []Column          `json:"columns"`
	Rows    []json.RawMessage `json:"rows,omitempty"`
	Count   int               `json:"count"`
	Cut     Cut               `json:"cut,omitempty"`
}

// Cut says what a result was cut at.
type Cut string

// What a result is cut at. A row whose text alone passes the bound is given with its
// longest texts cut short and marked with [CutMark], and nothing after it.
const (
	CutRows  Cut = "rows"
	CutBytes Cut = "bytes"
	CutCell  Cut = "cell"
)

// CutMark ends a text of which the rest was left out.
const CutMark = "… (cut)"

// Tree is what the engine's parser made of a text.
type Tree struct {
	// Statements is one syntax tree for each statement, as json_serialize_sql of the
	// engine writes them. Offsets in it count bytes from 0; one that is 2^64-1 is not
	// known.
	Statements []json.RawMessage `json:"statements"`
}

// Function is one of the engine's.
type Function struct {
	Name string `json:"name"`
	// Kind is scalar, aggregate, macro, table, table_macro or pragma. A name may
	// have more than one.
	Kind string `json:"kind"`
}
