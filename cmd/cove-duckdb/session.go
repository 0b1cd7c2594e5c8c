//go:build linux

package main

import (
	"runtime"
	"slices"

	"github.com/cove-sandbox/cove/cmd/cove-duckdb/duck"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// session is what has been asked so far.
type session struct {
	limit   func(memory int64, threads int) error
	work    work
	last    uint64
	db      *duck.Database
	conn    *duck.Conn // for statements of ours
	stage   stage
	broken  bool
	schemas map[string]*duck.Conn // by the schema in which they look, in lower case
}

// stage is what may be asked next.
type stage int

const (
	fresh  stage = iota // open
	opened              // describe, load
	loaded              // query, frame
	failed              // nothing: a load was not finished
)

// newSession takes what keeps the process within its memory.
func newSession(limit func(memory int64, threads int) error) *session {
	return &session{limit: limit, schemas: map[string]*duck.Conn{}}
}

// at says in which stages a verb is understood.
var at = map[ask.Verb][]stage{
	ask.VerbOpen:      {fresh},
	ask.VerbDescribe:  {opened},
	ask.VerbLoad:      {opened},
	ask.VerbQuery:     {loaded},
	ask.VerbFrame:     {loaded},
	ask.VerbParse:     {opened, loaded},
	ask.VerbFunctions: {opened, loaded},
}

// serve does what is asked and fills the answer. What it returns is a *ask.Fault, a
// *duck.Error or another error, which is the program's own fault.
func (s *session) serve(r *ask.Request, answer *ask.Answer) error {
	if fault := r.Check(); fault != nil {
		return fault
	}
	if r.ID <= s.last {
		return badRequest("the id must be above that of the request before")
	}
	s.last = r.ID
	if !slices.Contains(at[r.Verb], s.stage) {
		return badRequest(string(r.Verb) + " is out of order")
	}
	if !s.work.begin(r.ID) {
		return errStopped
	}
	switch r.Verb {
	case ask.VerbOpen:
		return s.open(r.Open, answer)
	case ask.VerbDescribe:
		return s.describe(r.Describe, answer)
	case ask.VerbLoad:
		return s.load(r.Load, answer)
	case ask.VerbQuery:
		return s.query(r.Query, answer)
	case ask.VerbFrame:
		return s.frame(r.Frame, answer)
	case ask.VerbParse:
		return s.parse(r.Parse, answer)
	case ask.VerbFunctions:
		return s.functions(answer)
	case ask.VerbStop:
	}
	return badRequest(string(r.Verb) + " is out of order")
}

// open starts the engine.
func (s *session) open(o *ask.Open, answer *ask.Answer) error {
	runtime.GOMAXPROCS(o.Threads)
	// The engine keeps to its part by itself, with an error that says so.
	db, err := duck.Open(duck.Options{Memory: o.Memory / 10 * 7, Threads: o.Threads})
	if err != nil {
		return err
	}
	if s.conn, err = connect(db, "main"); err != nil {
		return err
	}
	if err := s.limit(o.Memory, o.Threads); err != nil {
		return err
	}
	s.db, s.schemas["main"], s.stage = db, s.conn, opened
	answer.Opened = &ask.Opened{Protocol: ask.Version, Engine: duck.Version()}
	return nil
}

// connect makes a connection that looks for tables in a schema.
func connect(db *duck.Database, schema string) (*duck.Conn, error) {
	conn, err := db.Connect()
	if err != nil {
		return nil, err
	}
	for _, sql := range []string{"SET TimeZone = 'UTC'", "USE " + duck.Quote(duck.Catalog) + "." + duck.Quote(schema)} {
		if err := conn.Exec(sql); err != nil {
			return nil, err
		}
	}
	return conn, nil
}
