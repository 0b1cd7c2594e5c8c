package pyrun

import (
	"encoding/json"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// asked is what tables.py is told.
type asked struct {
	Tables   []askedTable `json:"tables"`
	MaxRows  int          `json:"max_rows"`
	MaxBytes int64        `json:"max_bytes"`
	Scratch  string       `json:"scratch"`
}

type askedTable struct {
	Name    string   `json:"name"`
	Path    string   `json:"path"`
	File    string   `json:"file"`
	Format  Format   `json:"format"`
	Columns []string `json:"columns"`
	Problem string   `json:"problem"`
	Named   bool     `json:"named"` // the code seems to speak of it
}

// prelude is the code that loads tables and confines the interpreter. A text of JSON is one of Python, too.
func prelude(q Question) (string, error) {
	a := asked{Tables: []askedTable{}, MaxRows: q.MaxRows, MaxBytes: int64(q.MaxOutput), Scratch: q.Scratch}
	for _, t := range q.Tables {
		file := t.File
		if file == "" {
			file = path.Base(t.Path)
		}
		a.Tables = append(a.Tables, askedTable{Name: t.Name, Path: t.Path, File: file, Format: t.Format, Columns: t.Columns, Problem: t.Problem, Named: names(q.Code, t.Name)})
	}
	var texts [2]string
	data, err := json.Marshal(a)
	if err != nil {
		return "", err
	}
	for i, text := range []string{tablesPy + ask.FramePython + confinePy + valuesPy, string(data)} {
		literal, err := json.Marshal(text)
		if err != nil {
			return "", err
		}
		texts[i] = string(literal)
	}
	return `exec(compile(` + texts[0] + `, "<cove>", "exec"), {"__name__": "cove_run", "home": globals(), "asked": ` + texts[1] + `})`, nil
}

// names reports whether code may speak of a table by its name. Python takes different
// letters for the same name, so code with others than those of ASCII may speak of any.
func names(code, table string) bool {
	if strings.IndexFunc(code, func(r rune) bool { return r > unicode.MaxASCII }) >= 0 {
		return true
	}
	word := strings.Map(func(r rune) rune {
		if inName(r) {
			return r
		}
		return '_'
	}, table)
	for rest := code; word != ""; {
		before, after, ok := strings.Cut(rest, word)
		if !ok {
			return false
		}
		next, _ := utf8.DecodeRuneInString(after)
		last, _ := utf8.DecodeLastRuneInString(before)
		// Names that are taken, or that cannot begin as they do, have one _ more.
		if (last == '_' || !inName(last)) && (next == '_' || !inName(next)) {
			return true
		}
		rest = after
	}
	return false
}

func inName(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }
