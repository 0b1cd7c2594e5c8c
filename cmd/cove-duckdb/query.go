//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cove-sandbox/cove/cmd/cove-duckdb/duck"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// query runs one SELECT and answers with its rows.
func (s *session) query(q *ask.Query, answer *ask.Answer) error {
	rows, err := s.run(q.SQL, q.Schema)
	if err != nil {
		return err
	}
	defer rows.Close()
	answer.Rows, err = collect(rows, q.MaxRows, q.MaxBytes)
	return err
}

// run starts a query where it can be stopped.
func (s *session) run(sql, schema string) (*duck.Rows, error) {
	conn := s.schemas[strings.ToLower(schemaOf(schema))]
	if conn == nil {
		return nil, badRequest(fmt.Sprintf("there is no schema %.80q", schema))
	}
	s.work.on(conn)
	rows, err := conn.Select(sql)
	if err != nil {
		return nil, err
	}
	for _, column := range rows.Columns {
		if name := column.Missing(); name != "" {
			rows.Close()
			return nil, &ask.Fault{Kind: ask.Failed, Message: fmt.Sprintf("the column %.80q has the type %s, which cannot be shown; cast it to VARCHAR", column.Name, name)}
		}
	}
	return rows, nil
}

// collect reads rows until there are no more, or as many as may be.
func collect(rows *duck.Rows, maxRows, maxBytes int) (*ask.Rows, error) {
	out := &ask.Rows{Columns: columnsOf(rows)}
	size := 0
	var buf []byte
	for {
		chunk, err := rows.Next()
		if err != nil {
			return nil, err
		}
		if chunk == nil {
			return out, nil
		}
		for row := range chunk.Rows {
			if out.Count == maxRows {
				out.Cut = ask.CutRows
				return out, nil
			}
			buf = chunk.AppendRow(buf[:0], row, maxBytes-size)
			if size+len(buf) > maxBytes {
				cut(out, chunk, row, maxBytes)
				return out, nil
			}
			size += len(buf)
			out.Rows = append(out.Rows, append(json.RawMessage(nil), buf...))
			out.Count++
		}
	}
}

// cut ends a result at a row that does not fit. The first one is given all the same,
// with its longest values cut short, if that helps.
func cut(out *ask.Rows, chunk *duck.Chunk, row, maxBytes int) {
	out.Cut = ask.CutBytes
	if out.Count > 0 {
		return
	}
	each := maxBytes/max(len(out.Columns), 1) - 2 // two for what is between values
	if short := chunk.AppendCut(nil, row, each, ask.CutMark); len(short) <= maxBytes {
		out.Cut, out.Rows, out.Count = ask.CutCell, []json.RawMessage{short}, 1
	}
}

func columnsOf(rows *duck.Rows) []ask.Column {
	columns := make([]ask.Column, len(rows.Columns))
	for i, column := range rows.Columns {
		columns[i] = ask.Column{Name: column.Name, Type: column.Type}
	}
	return columns
}
