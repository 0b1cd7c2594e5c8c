//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// load loads one table and returns what became of it.
func load(t *testing.T, tables ...ask.Table) (*peer, []ask.Loaded) {
	t.Helper()
	p := openPeer(t)
	a := p.ask(ask.Request{Verb: ask.VerbLoad, Load: &ask.Load{Tables: tables}})
	if a.Fault != nil {
		t.Fatal(a.Fault)
	}
	return p, a.Tables
}

func describe(l ask.Loaded) string {
	var names []string
	for _, c := range l.Columns {
		names = append(names, c.Name+" "+c.Type)
	}
	return fmt.Sprintf("%s: %d", strings.Join(names, ", "), l.Rows)
}

func TestCSV(t *testing.T) {
	mixed := strings.Repeat("1\n", 30_000) + "x\n"
	sparse := strings.Repeat("1,\n", 30_000) + "1,7\n"
	quotes := strings.Repeat("1,a\n", 30_000) + "1,\"b\"\n2,\"c, d\"\n"
	for name, c := range map[string]struct{ content, want, row string }{
		"a BOM":                {"\xef\xbb\xbfid,name\n1,Ada\n", "id BIGINT, name VARCHAR: 1", `[1,"Ada"]`},
		"quotes":               {"id,text\n1,\"a, \"\"b\"\"\nc\"\n", "id BIGINT, text VARCHAR: 1", `[1,"a, \"b\"\nc"]`},
		"Windows":              {"id,text\r\n1,a\r\n", "id BIGINT, text VARCHAR: 1", `[1,"a"]`},
		"semicolons":           {"id;amount\n1;2.5\n2;3.5\n", "id BIGINT, amount DOUBLE: 2", `[1,2.5]`},
		"tabs":                 {"id\tname\n1\tAda\n", "id BIGINT, name VARCHAR: 1", `[1,"Ada"]`},
		"types that change":    {"a\n" + mixed, "a VARCHAR: 30001", `["1"]`},
		"types that come late": {"a,b\n" + sparse, "a BIGINT, b BIGINT: 30001", `[1,null]`},
		"quotes far down":      {"a,b\n" + quotes, "a BIGINT, b VARCHAR: 30002", `[1,"a"]`},
		"numbers that grow":    {"a\n" + strings.Repeat("1\n", 30_000) + "2.5\n", "a DOUBLE: 30001", `[1]`},
		"dates":                {"d,t\n2020-01-02,2020-01-02 03:04:05\n", "d DATE, t TIMESTAMP: 1", `["2020-01-02","2020-01-02T03:04:05"]`},
		"names twice":          {"a,a,A,b\n1,2,3,4\n", "a BIGINT, a_1 BIGINT, A_2 BIGINT, b BIGINT: 1", `[1,2,3,4]`},
		"odd names":            {"order,Sum of 'x',\"a\"\"b\",\n1,2,3,4\n", `order BIGINT, Sum of 'x' BIGINT, a"b BIGINT, column3 BIGINT: 1`, `[1,2,3,4]`},
		"marks of comments":    {"id,name\n#1,a\n2,b\n#3,c\n", "id VARCHAR, name VARCHAR: 3", `["#1","a"]`},
		"a comma in a name":    {"\"last, first\",b\n\"Lovelace, Ada\",2\n", "last, first VARCHAR, b BIGINT: 1", `["Lovelace, Ada",2]`},
		"commas of numbers":    {"a;b\n1;2,5\n", "a BIGINT, b VARCHAR: 1", `[1,"2,5"]`},
		"a title":              {"Report\na,b\n1,2\n", "Report VARCHAR: 2", `["a,b"]`},
		"commas at the end":    {"a,b\n1,2,\n3,4,\n", "a BIGINT, b BIGINT: 2", `[1,2]`},
		"empty lines at first": {"\xef\xbb\xbf\r\n\r\na,b\r\n1,2\r\n", "a BIGINT, b BIGINT: 1", `[1,2]`},
		"empty lines before":   {"\n\na,b\n1,2\n", "a BIGINT, b BIGINT: 1", `[1,2]`},
		"only names":           {"id,name\n", "id VARCHAR, name VARCHAR: 0", ""},
		"only text":            {"first,last\nAda,Lovelace\nAlan,Turing\n", "first VARCHAR, last VARCHAR: 2", `["Ada","Lovelace"]`},
		"one column":           {"name\nAda\nBob\n", "name VARCHAR: 2", `["Ada"]`},
		"empty cells":          {"a,b\n,\n1,\n", "a BIGINT, b VARCHAR: 2", `[null,null]`},
		"no newline at end":    {"a\n1", "a BIGINT: 1", `[1]`},
		"formulas":             {"a\n=1+1\n@x\n", "a VARCHAR: 2", `["=1+1"]`},
		"escape sequences":     {"a\n\x1b[31mred\n", "a VARCHAR: 1", `["\u001b[31mred"]`},
		"what looks like code": {"a\n\"'); DROP TABLE x; --\"\n", "a VARCHAR: 1", `["'); DROP TABLE x; --"]`},
	} {
		t.Run(name, func(t *testing.T) {
			p, got := load(t, table(t, "x.csv", c.content))
			if got[0].Problem != "" {
				t.Fatal(got[0].Problem)
			}
			if d := describe(got[0]); d != c.want {
				t.Errorf("it has %s, want %s", d, c.want)
			}
			if rows := p.rows("FROM x LIMIT 1"); c.row != "" && (len(rows) != 1 || rows[0] != c.row) {
				t.Errorf("it has %s, want %s", rows, c.row)
			}
		})
	}
}

func TestManyColumns(t *testing.T) {
	wide := func(n int) string {
		var b strings.Builder
		for _, format := range []string{"c%d", "%d"} {
			for i := range n {
				if i > 0 {
					b.WriteByte(',')
				}
				fmt.Fprintf(&b, format, i)
			}
			b.WriteByte('\n')
		}
		return b.String()
	}
	p, got := load(t, table(t, "wide.csv", wide(10_000)))
	if got[0].Problem != "" || len(got[0].Columns) != 10_000 || got[0].Rows != 1 {
		t.Fatal(got[0].Problem, len(got[0].Columns))
	}
	if rows := p.rows("SELECT c9999 FROM wide"); rows[0] != "[9999]" {
		t.Error(rows)
	}
	if a := p.query("FROM wide"); a.Fault != nil || len(a.Rows.Columns) != 10_000 {
		t.Error(a.Fault)
	}
}

func TestProblemsOfFiles(t *testing.T) {
	words := utf16.Encode([]rune("id,name\n1,Ada\n"))
	wide := binary.LittleEndian.AppendUint16(nil, 0xfeff)
	for _, w := range words {
		wide = binary.LittleEndian.AppendUint16(wide, w)
	}
	for name, c := range map[string]struct {
		table ask.Table
		want  string
	}{
		"empty":            {table(t, "orders.csv", ""), "orders.csv is empty"},
		"blank":            {table(t, "orders.csv", "\xef\xbb\xbf \n\n"), "orders.csv is empty"},
		"empty JSON":       {table(t, "orders.json", ""), "orders.json is empty"},
		"Latin-1":          {table(t, "orders.csv", "id,name\n1,Ad\xe9le\n"), "orders.csv, line 2 is not in UTF-8; save it as UTF-8"},
		"Latin-1 far down": {table(t, "orders.csv", "id,name\n"+strings.Repeat("1,Ada\n", 50_000)+"1,Ad\xe9le\n"), "not in UTF-8; save it as UTF-8"},
		"one value less":   {table(t, "x.csv", "a,b\n1,2\n\n\"3\n\"\n"), "x.csv: line 4 has 1 columns, not 2"},
		"one value more":   {table(t, "x.csv", "a,b\n"+strings.Repeat("1,2\n", 30_000)+"1,2,3\n"), "x.csv: line 30002 has 3 columns, not 2"},
		"UTF-16":           {table(t, "orders.csv", string(wide)), "orders.csv is in UTF-16; save it as UTF-8"},
		"broken JSON":      {table(t, "x.json", `{"a": 1`+"\n"+`{"a": `), "x.json cannot be read"},
		"no Parquet":       {table(t, "x.parquet", "id,name\n1,Ada\n"), "x.parquet cannot be read"},
		"empty Parquet":    {table(t, "x.parquet", ""), "x.parquet is empty"},
		"too many columns": {table(t, "x.csv", strings.Repeat("a,", ask.MaxColumns)+"a\n"), "more than 16384"},
		"not there":        {ask.Table{Name: "x", Path: "/nonexistent/x.csv", Format: ask.CSV}, "x.csv is not there"},
		"a directory":      {ask.Table{Name: "x", Path: t.TempDir(), Format: ask.CSV}, "is not a file"},
		"no such column":   {withColumns(table(t, "x.csv", "a\n1\n"), "b"), `"b" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			good := table(t, "good.csv", "a\n1\n")
			p, got := load(t, c.table, good)
			if !strings.Contains(got[0].Problem, c.want) || got[0].Columns != nil || strings.Contains(got[0].Problem, "/proc") || strings.Contains(got[0].Problem, "/tmp") || strings.Contains(got[0].Problem, "\n") {
				t.Errorf("%q, want %q", got[0].Problem, c.want)
			}
			if got[1].Problem != "" {
				t.Errorf("the other one: %s", got[1].Problem)
			}
			if rows := p.rows("FROM good"); rows[0] != "[1]" {
				t.Error(rows)
			}
			if a := p.query("SELECT * FROM " + c.table.Name); c.table.Name != "good" && a.Fault == nil {
				t.Error("there is a table")
			}
		})
	}
}

func withColumns(t ask.Table, columns ...string) ask.Table {
	t.Columns = columns
	return t
}

func TestNotFiles(t *testing.T) {
	dir := t.TempDir()
	link, pipe := filepath.Join(dir, "link.csv"), filepath.Join(dir, "pipe.csv")
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	_, got := load(t,
		ask.Table{Name: "link", Path: link, Format: ask.CSV},
		ask.Table{Name: "pipe", Path: pipe, Format: ask.CSV},
		ask.Table{Name: "device", Path: "/dev/zero", Format: ask.CSV})
	for i, want := range []string{"link.csv is a link", "pipe.csv is not a file", "zero is not a file"} {
		if got[i].Problem != want {
			t.Errorf("%q, want %q", got[i].Problem, want)
		}
	}
}

// A name is a name: it is no pattern that more files fit.
func TestNamesAreNoPatterns(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"*.csv", "a.csv", "[ab].csv", "year=2020.csv", "a'b.csv", "2024 sales.csv", "ü.csv"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("name\n"+name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"*.csv", "[ab].csv", "year=2020.csv", "a'b.csv", "2024 sales.csv", "ü.csv"} {
		p, got := load(t, ask.Table{Name: name, Path: filepath.Join(dir, name), Format: ask.CSV})
		if got[0].Problem != "" || got[0].Rows != 1 || len(got[0].Columns) != 1 {
			t.Errorf("%s: %+v", name, got[0])
			continue
		}
		if rows := p.rows(`FROM "` + name + `"`); len(rows) != 1 || rows[0] != `["`+name+`"]` {
			t.Errorf("%s: %s", name, rows)
		}
	}
}

func TestSomeColumns(t *testing.T) {
	p, got := load(t, withColumns(table(t, "x.csv", "a,b,c d\n1,2,3\n"), "c d", "a"))
	if d := describe(got[0]); d != "c d BIGINT, a BIGINT: 1" {
		t.Error(d)
	}
	for _, sql := range []string{"SELECT b FROM x", "SELECT x.b FROM x", "SELECT COLUMNS('b') FROM x"} {
		if a := p.query(sql); a.Fault == nil {
			t.Errorf("%s: %s", sql, a.Rows.Rows)
		}
	}
	if rows := p.rows("SELECT * FROM x"); rows[0] != "[3,1]" {
		t.Error(rows)
	}
}

func TestDescribe(t *testing.T) {
	p := openPeer(t)
	tables := []ask.Table{table(t, "x.csv", "a,b\n1,x\n2,y\n3,z\n"), table(t, "bad.csv", ""), withColumns(table(t, "y.json", `[{"a": 1, "b": {"c": [1]}}]`), "b")}
	a := p.ask(ask.Request{Verb: ask.VerbDescribe, Describe: &ask.Describe{Tables: tables, Samples: 2}})
	if a.Fault != nil {
		t.Fatal(a.Fault)
	}
	if got := describe(a.Tables[0]); got != "a BIGINT, b VARCHAR: 3" || len(a.Tables[0].Samples) != 2 || string(a.Tables[0].Samples[1]) != `[2,"y"]` {
		t.Errorf("%s, %s", got, a.Tables[0].Samples)
	}
	if a.Tables[1].Problem != "bad.csv is empty" {
		t.Errorf("%+v", a.Tables[1])
	}
	if got := describe(a.Tables[2]); got != `b STRUCT("c" BIGINT[]): 1` || string(a.Tables[2].Samples[0]) != `[{"c":[1]}]` {
		t.Errorf("%s, %s", got, a.Tables[2].Samples)
	}
	// Nothing was kept, and it may be loaded now.
	a = p.ask(ask.Request{Verb: ask.VerbLoad, Load: &ask.Load{Tables: tables[:1]}})
	if a.Fault != nil || a.Tables[0].Problem != "" {
		t.Fatal(a.Fault, a.Tables)
	}
	if a := p.ask(ask.Request{Verb: ask.VerbDescribe, Describe: &ask.Describe{}}); a.Fault == nil || a.Fault.Kind != ask.BadRequest {
		t.Error("it looks into files after the door was closed")
	}
}

func TestParquet(t *testing.T) {
	p := openPeer(t)
	path := filepath.Join(t.TempDir(), "x.parquet")
	if err := p.session().conn.Exec("COPY (SELECT i, i::VARCHAR AS s, i::DECIMAL(20,2) AS d FROM range(3) r(i)) TO '" + path + "' (FORMAT parquet)"); err != nil {
		t.Fatal(err)
	}
	a := p.ask(ask.Request{Verb: ask.VerbLoad, Load: &ask.Load{Tables: []ask.Table{{Name: "x", Path: path, Format: ask.Parquet}}}})
	if a.Fault != nil || describe(a.Tables[0]) != "i BIGINT, s VARCHAR, d DECIMAL(20,2): 3" {
		t.Fatal(a.Fault, a.Tables)
	}
	if rows := p.rows("FROM x ORDER BY i DESC LIMIT 1"); rows[0] != `[2,"2","2.00"]` {
		t.Error(rows)
	}
}
