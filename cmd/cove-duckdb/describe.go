//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"

	"github.com/cove-sandbox/cove/cmd/cove-duckdb/duck"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// maxSample bounds the samples of one table, in bytes.
const maxSample = 64 << 10

// describe looks into files, and keeps nothing of them.
func (s *session) describe(d *ask.Describe, answer *ask.Answer) error {
	s.work.on(s.conn)
	answer.Tables = make([]ask.Loaded, len(d.Tables))
	for i := range d.Tables {
		t := &d.Tables[i]
		out := &answer.Tables[i]
		out.Schema, out.Name = t.Schema, t.Name
		if err := s.describeTable(t, d.Samples, out); err != nil {
			if s.work.cut() {
				return errStopped
			}
			if gone(err) {
				return err
			}
			p := problemOf(err, baseName(t))
			*out = ask.Loaded{Schema: t.Schema, Name: t.Name, Problem: p.text, Memory: p.memory}
		}
	}
	return nil
}

func (s *session) describeTable(t *ask.Table, samples int, out *ask.Loaded) error {
	src, err := openSource(t)
	if err != nil {
		return err
	}
	defer func() { _ = src.file.Close() }() // nothing was written
	from := "(SELECT " + selection(t.Columns) + " FROM " + src.sql + ")"
	if err := s.measure(from, out); err != nil {
		return src.explain(err, baseName(t))
	}
	if samples == 0 {
		return nil
	}
	rows, err := s.conn.Select(fmt.Sprintf("SELECT * FROM %s LIMIT %d", from, samples))
	if err != nil {
		return err
	}
	defer rows.Close()
	got, err := collect(rows, samples, maxSample)
	if err != nil {
		return err
	}
	out.Samples = got.Rows
	return nil
}

// number is the one integer that a query of ours results in.
func (s *session) number(sql string) (int64, error) {
	rows, err := s.conn.Select(sql)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	got, err := collect(rows, 1, maxSample)
	if err != nil {
		return 0, err
	}
	var row []json.Number
	if len(got.Rows) != 1 || json.Unmarshal(got.Rows[0], &row) != nil || len(row) != 1 {
		return 0, fmt.Errorf("%s has no number", sql)
	}
	return strconv.ParseInt(row[0].String(), 10, 64)
}

// gone reports whether the engine cannot be used any more.
func gone(err error) bool {
	said, ok := errors.AsType[*duck.Error](err)
	return ok && kindOf(said) == ask.Internal
}

func baseName(t *ask.Table) string { return path.Base(t.Path) }
