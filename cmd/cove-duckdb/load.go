//go:build linux

package main

import (
	"strings"

	"github.com/cove-sandbox/cove/cmd/cove-duckdb/duck"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// load reads the files into tables, and closes the door.
func (s *session) load(l *ask.Load, answer *ask.Answer) error {
	s.stage = failed
	s.work.on(s.conn)
	answer.Tables = make([]ask.Loaded, len(l.Tables))
	for i := range l.Tables {
		t := &l.Tables[i]
		out := &answer.Tables[i]
		out.Schema, out.Name = t.Schema, t.Name
		if err := s.loadTable(t, out); err != nil {
			if s.work.cut() {
				return errStopped
			}
			if gone(err) {
				return err
			}
			p := problemOf(err, baseName(t))
			out.Columns, out.Rows, out.Problem, out.Memory = nil, 0, p.text, p.memory
		}
	}
	if err := s.lock(); err != nil {
		return err
	}
	s.stage = loaded
	return nil
}

// loadTable reads one file. What it makes is whole or not there.
func (s *session) loadTable(t *ask.Table, out *ask.Loaded) error {
	src, err := openSource(t)
	if err != nil {
		return err
	}
	defer func() { _ = src.file.Close() }() // nothing was written
	schema := schemaOf(t.Schema)
	if err := s.schema(schema); err != nil {
		return err
	}
	table := duck.Quote(schema) + "." + duck.Quote(t.Name)
	if err := s.conn.Exec("CREATE TABLE " + table + " AS SELECT " + selection(t.Columns) + " FROM " + src.sql); err != nil {
		return src.explain(err, baseName(t))
	}
	if err := s.measure(table, out); err != nil {
		_ = s.conn.Exec("DROP TABLE " + table) // the first error says more
		return err
	}
	return nil
}

// measure fills in what there is to know of a table, or of anything that is read
// like one.
func (s *session) measure(table string, out *ask.Loaded) error {
	rows, err := s.conn.Select("SELECT * FROM " + table + " LIMIT 0")
	if err != nil {
		return err
	}
	out.Columns = columnsOf(rows)
	rows.Close()
	if len(out.Columns) > ask.MaxColumns {
		return wrong("%s has %d columns, more than %d", out.Name, len(out.Columns), ask.MaxColumns)
	}
	out.Rows, err = s.number("SELECT count(*) FROM " + table)
	return err
}

// schema makes a schema and a connection that looks in it, once.
func (s *session) schema(name string) error {
	key := strings.ToLower(name)
	if s.schemas[key] != nil {
		return nil
	}
	if err := s.conn.Exec("CREATE SCHEMA IF NOT EXISTS " + duck.Quote(name)); err != nil {
		return err
	}
	conn, err := connect(s.db, name)
	if err != nil {
		return err
	}
	s.schemas[key] = conn
	return nil
}

// lock closes the door: from here on the engine opens no file, loads no extension and
// takes no setting.
func (s *session) lock() error {
	for _, sql := range []string{
		"SET enable_external_access = false",
		"SET disabled_filesystems = 'LocalFileSystem'",
		"SET lock_configuration = true",
	} {
		if err := s.conn.Exec(sql); err != nil {
			return err
		}
	}
	return nil
}

// schemaOf is the schema that a name stands for.
func schemaOf(name string) string {
	if name == "" {
		return "main"
	}
	return name
}
