package e2bapi

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/cove-sandbox/cove"
)

// resultLine is a value that code showed, in the forms that clients know by name.
type resultLine struct {
	Type       string            `json:"type"`
	Main       bool              `json:"is_main_result"`
	Text       *string           `json:"text,omitempty"`
	HTML       *string           `json:"html,omitempty"`
	Markdown   *string           `json:"markdown,omitempty"`
	SVG        *string           `json:"svg,omitempty"`
	PNG        *string           `json:"png,omitempty"`
	JPEG       *string           `json:"jpeg,omitempty"`
	PDF        *string           `json:"pdf,omitempty"`
	Latex      *string           `json:"latex,omitempty"`
	JSON       json.RawMessage   `json:"json,omitempty"`
	JavaScript *string           `json:"javascript,omitempty"`
	Data       json.RawMessage   `json:"data,omitempty"`
	Chart      json.RawMessage   `json:"chart,omitempty"`
	Extra      map[string]string `json:"extra,omitempty"`
}

// lineOf is a value as a line. What has no name of its own is in extra, by its type.
func lineOf(r cove.Rich, main bool) resultLine {
	l := resultLine{Type: lineResult, Main: main}
	texts := map[string]**string{
		"text/html": &l.HTML, "text/markdown": &l.Markdown, "image/svg+xml": &l.SVG, "image/png": &l.PNG, "image/jpeg": &l.JPEG,
		"application/pdf": &l.PDF, "text/latex": &l.Latex, "application/javascript": &l.JavaScript,
	}
	trees := map[string]*json.RawMessage{"e2b/data": &l.Data, "e2b/chart": &l.Chart, "application/json": &l.JSON}
	for kind, form := range r {
		switch {
		case kind == "text/plain":
			l.Text = new(unquoted(form))
		case texts[kind] != nil:
			*texts[kind] = new(form)
		case trees[kind] != nil && json.Valid([]byte(form)):
			*trees[kind] = json.RawMessage(form)
		default:
			if l.Extra == nil {
				l.Extra = map[string]string{}
			}
			l.Extra[kind] = form
		}
	}
	if data, ok := columnsOf(l.JSON); ok && l.Data == nil {
		l.Data, l.JSON = data, nil
	}
	return l
}

// unquoted takes one pair of quotes off a text, as clients expect of texts.
func unquoted(text string) string {
	for _, quote := range []string{"'", `"`} {
		if len(text) > 1 && strings.HasPrefix(text, quote) && strings.HasSuffix(text, quote) {
			return text[1 : len(text)-1]
		}
	}
	return text
}

// columnsOf is a table, as our interpreters show a frame, by columns, as clients expect
// one. It reports false for what is no table, or not the whole of one.
func columnsOf(text json.RawMessage) (json.RawMessage, bool) {
	var table struct {
		Columns   []json.RawMessage   `json:"columns"`
		Rows      [][]json.RawMessage `json:"rows"`
		Count     *int                `json:"row_count"`
		Truncated *bool               `json:"truncated"`
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if len(text) == 0 || dec.Decode(&table) != nil || table.Count == nil || table.Truncated == nil || *table.Truncated || *table.Count != len(table.Rows) {
		return nil, false
	}
	seen := map[string]bool{}
	var out bytes.Buffer
	for i, column := range table.Columns {
		name := columnName(column)
		if seen[name] {
			return nil, false // by name one of the two would be lost
		}
		seen[name] = true
		out.WriteByte("{,"[min(i, 1)])
		label, err := json.Marshal(name)
		if err != nil {
			return nil, false
		}
		out.Write(label)
		out.WriteString(":[")
		for j, row := range table.Rows {
			if len(row) != len(table.Columns) {
				return nil, false
			}
			if j > 0 {
				out.WriteByte(',')
			}
			out.Write(row[i])
		}
		out.WriteByte(']')
	}
	if len(table.Columns) == 0 {
		out.WriteByte('{')
	}
	out.WriteByte('}')
	return out.Bytes(), true
}

// columnName is the name of a column: names that are numbers are the same in words.
func columnName(column json.RawMessage) string {
	var name string
	if json.Unmarshal(column, &name) == nil {
		return name
	}
	return string(column)
}
