//go:build linux

package main

import (
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"github.com/cove-sandbox/cove/cmd/cove-duckdb/duck"
)

// explain says which line is too short or too long, where the engine only says that it
// could make nothing of a file, or of a line. Other errors stay as they are.
func (src *source) explain(err error, name string) error {
	const most = 256 << 20
	said, ok := errors.AsType[*duck.Error](err)
	if !ok || src.separator == "" || !strings.Contains(said.Message, "sniffing") && !strings.Contains(said.Message, "Number of Columns") {
		return err
	}
	lines := csv.NewReader(io.NewSectionReader(src.file, 0, most))
	lines.Comma, lines.FieldsPerRecord, lines.LazyQuotes, lines.ReuseRecord = rune(src.separator[0]), -1, true, true
	names, bad := lines.Read()
	for n := len(names); bad == nil; {
		var values []string
		if values, bad = lines.Read(); bad == nil && len(values) != n {
			line, _ := lines.FieldPos(0)
			return wrong("%s: line %d has %d columns, not %d", name, line, len(values), n)
		}
	}
	return err
}
