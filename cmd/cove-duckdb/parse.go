//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/cove-sandbox/cove/cmd/cove-duckdb/duck"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// parse reads a text and runs nothing of it.
func (s *session) parse(p *ask.Parse, answer *ask.Answer) error {
	s.work.on(s.conn)
	text, err := s.document("SELECT json_serialize_sql(" + duck.Literal(p.SQL) + ", skip_empty := false, skip_null := false)")
	if err != nil {
		return err
	}
	var said struct {
		Error      bool              `json:"error"`
		Type       string            `json:"error_type"`
		Message    string            `json:"error_message"`
		Subtype    string            `json:"error_subtype"`
		Position   string            `json:"position"`
		Statements []json.RawMessage `json:"statements"`
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return fmt.Errorf("syntax tree: %w", err)
	}
	switch {
	case !said.Error:
		answer.Tree = &ask.Tree{Statements: said.Statements}
		return nil
	case said.Type == "not implemented":
		return &duck.Error{Type: duck.TypeNotSelect, Position: -1, Message: "only a SELECT can be read"}
	}
	fault := &duck.Error{Type: duck.TypeParser, Subtype: said.Subtype, Position: -1, Message: said.Message}
	if at, err := strconv.Atoi(said.Position); err == nil {
		fault.Position = at
	}
	return fault
}

// document is the one JSON document that a query of ours results in.
func (s *session) document(sql string) (json.RawMessage, error) {
	rows, err := s.conn.Select(sql)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	got, err := collect(rows, 1, ask.MaxFrame)
	if err != nil {
		return nil, err
	}
	var row []json.RawMessage
	switch {
	case got.Cut == ask.CutBytes || got.Cut == ask.CutCell:
		return nil, &ask.Fault{Kind: ask.Large, Message: "its syntax tree is too large"}
	case len(got.Rows) != 1 || json.Unmarshal(got.Rows[0], &row) != nil || len(row) != 1:
		return nil, errors.New("the engine gives no document")
	}
	return row[0], nil
}
