//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/cove-sandbox/cove/cmd/cove-duckdb/duck"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// functions lists what the engine has, by kind and name.
func (s *session) functions(answer *ask.Answer) error {
	s.work.on(s.conn)
	var err error
	answer.Functions, err = functionsOf(s.conn)
	return err
}

func functionsOf(conn *duck.Conn) ([]ask.Function, error) {
	rows, err := conn.Select("SELECT DISTINCT function_name, function_type FROM duckdb_functions() ORDER BY ALL")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	got, err := collect(rows, ask.MaxRows, ask.MaxFrame)
	if err != nil {
		return nil, err
	}
	all := make([]ask.Function, len(got.Rows))
	for i, row := range got.Rows {
		var pair [2]string
		if err := json.Unmarshal(row, &pair); err != nil {
			return nil, fmt.Errorf("functions: %w", err)
		}
		all[i] = ask.Function{Name: pair[0], Kind: pair[1]}
	}
	return all, nil
}

// printFunctions writes them for people, one on each line.
func printFunctions(w io.Writer) error {
	db, err := duck.Open(duck.Options{Memory: ask.MinMemory, Threads: 1})
	if err != nil {
		return err
	}
	conn, err := db.Connect()
	if err != nil {
		return err
	}
	all, err := functionsOf(conn)
	if err != nil {
		return err
	}
	for _, f := range all {
		if _, err := fmt.Fprintf(w, "%s %s\n", f.Kind, f.Name); err != nil {
			return err
		}
	}
	return nil
}
