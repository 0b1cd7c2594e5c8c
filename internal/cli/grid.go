//go:build !lean

package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"
)

// maxWidth is how wide a column is made for its longest cell; a longer one moves
// what is right of it, and not every line.
const maxWidth = 60

// cell is one value of an answer.
type cell struct {
	text   string
	null   bool
	number bool
}

// grid is the rows of an answer.
type grid struct {
	head []string
	rows [][]cell
}

// gridOf reads rows, each a list in JSON. One that is none is a single cell.
func gridOf(head []string, rows []json.RawMessage) grid {
	g := grid{head: head}
	for _, raw := range rows {
		var values []json.RawMessage
		if json.Unmarshal(raw, &values) != nil {
			values = []json.RawMessage{raw}
		}
		row := make([]cell, len(values))
		for i, v := range values {
			row[i] = cellOf(v)
		}
		g.rows = append(g.rows, row)
	}
	return g
}

func cellOf(raw json.RawMessage) cell {
	raw = bytes.TrimSpace(raw)
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return cell{null: true}
	case json.Unmarshal(raw, &text) == nil:
		return cell{text: text}
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return cell{text: string(raw), number: true}
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return cell{text: string(raw)}
	}
	return cell{text: b.String()}
}

// shown is a cell as a terminal can have it.
func (c cell) shown() string {
	if c.null {
		return "NULL"
	}
	return escape(c.text)
}

// table writes the rows in aligned columns, numbers to the right.
func (g grid) table(w io.Writer) error {
	lines := [][]string{make([]string, len(g.head))}
	for i, name := range g.head {
		lines[0][i] = escape(name)
	}
	for _, row := range g.rows {
		line := make([]string, len(row))
		for i, c := range row {
			line[i] = c.shown()
		}
		lines = append(lines, line)
	}
	widths := widthsOf(lines)
	right := g.numbers(len(widths))
	var b strings.Builder
	for n, line := range lines {
		writeLine(&b, line, widths, right)
		if n == 0 {
			rule := make([]string, len(widths))
			for i, width := range widths {
				rule[i] = strings.Repeat("-", max(width, 1))
			}
			writeLine(&b, rule, widths, right)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func widthsOf(lines [][]string) []int {
	var widths []int
	for _, line := range lines {
		for i, text := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], min(utf8.RuneCountInString(text), maxWidth))
		}
	}
	return widths
}

// numbers reports which columns hold nothing but numbers.
func (g grid) numbers(columns int) []bool {
	right := make([]bool, columns)
	for i := range right {
		for _, row := range g.rows {
			if i < len(row) && !row[i].null {
				if right[i] = row[i].number; !right[i] {
					break
				}
			}
		}
	}
	return right
}

func writeLine(b *strings.Builder, line []string, widths []int, right []bool) {
	var out strings.Builder
	for i, text := range line {
		if i > 0 {
			out.WriteString("  ")
		}
		pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(text)))
		if right[i] {
			out.WriteString(pad + text)
		} else {
			out.WriteString(text + pad)
		}
	}
	b.WriteString(strings.TrimRight(out.String(), " ") + "\n")
}

// csv writes the rows as RFC 4180 has it. safe makes what would steer a terminal
// visible; a file gets every value as it is.
func (g grid) csv(w io.Writer, safe bool) error {
	var b strings.Builder
	record := func(cells []cell) {
		for i, c := range cells {
			if i > 0 {
				b.WriteByte(',')
			}
			if safe {
				c.text = escape(c.text)
			}
			b.WriteString(c.field())
		}
		b.WriteString("\r\n")
	}
	head := make([]cell, len(g.head))
	for i, name := range g.head {
		head[i] = cell{text: name}
	}
	record(head)
	for _, row := range g.rows {
		record(row)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// field is a cell in CSV. An empty text is told from no value.
func (c cell) field() string {
	switch {
	case c.null:
		return ""
	case c.text == "" || strings.ContainsAny(c.text, "\",\r\n") || strings.HasPrefix(c.text, " ") || strings.HasSuffix(c.text, " "):
		return `"` + strings.ReplaceAll(c.text, `"`, `""`) + `"`
	}
	return c.text
}
