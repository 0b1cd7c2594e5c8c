//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// python is one that may have pandas.
const python = "/usr/bin/python3"

// readFrame runs code with the frame of a file as df.
func readFrame(t *testing.T, path, code string) string {
	t.Helper()
	if exec.CommandContext(t.Context(), python, "-I", "-c", "import pandas").Run() != nil {
		skip(t, "there is no pandas: install python3-pandas")
	}
	script := ask.FramePython + "\nimport sys\ndf = cove_frame(sys.argv[1])\n" + code
	out, err := exec.CommandContext(t.Context(), python, "-I", "-c", script, path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func (p *peer) frame(sql string, maxRows int, maxBytes int64) (string, *ask.Answer) {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "frame")
	return path, p.ask(ask.Request{Verb: ask.VerbFrame, Frame: &ask.Frame{SQL: sql, MaxRows: maxRows, MaxBytes: maxBytes, Path: path}})
}

func TestFrame(t *testing.T) {
	p := loadPeer(t)
	var paths, want []string
	var code string
	for _, c := range []struct{ values, kind, want string }{
		{"(1::TINYINT), (2)", "int8", "[1, 2]"},
		{"(1), (NULL), (3)", "Int32", "[1, <NA>, 3]"},
		{"(9007199254740993::BIGINT), (NULL)", "Int64", "[9007199254740993, <NA>]"},
		{"(18446744073709551615::UBIGINT)", "uint64", "[18446744073709551615]"},
		{"(7::HUGEINT), (8)", "int64", "[7, 8]"},
		{"(7::HUGEINT), (NULL)", "Int64", "[7, <NA>]"},
		{"(170141183460469231731687303715884105727::HUGEINT), (NULL)", "object", "[170141183460469231731687303715884105727, None]"},
		{"(true), (false)", "bool", "[True, False]"},
		{"(true), (NULL)", "boolean", "[True, <NA>]"},
		{"(1.5::DOUBLE), (NULL), ('inf')", "float64", "[1.5, nan, inf]"},
		{"(0.5::FLOAT)", "float32", "[0.5]"},
		{"(12.30::DECIMAL(9,2)), (NULL)", "float64", "[12.3, nan]"},
		{"(12345678901234567890.12::DECIMAL(38,2)), (NULL)", "object", "[Decimal('12345678901234567890.12'), None]"},
		{"('ü'), (NULL), (''), ('a longer text than twelve')", "object", "['ü', None, '', 'a longer text than twelve']"},
		{"('b'::ENUM('a', 'b'))", "object", "['b']"},
		{"('\\x00\\xFF'::BLOB), (NULL)", "object", "[b'\\x00\\xff', None]"},
		{"('12345678-9abc-def0-1234-56789abcdef0'::UUID)", "object", "['12345678-9abc-def0-1234-56789abcdef0']"},
		{"(DATE '2020-01-02'), (NULL), ('infinity')", "datetime64[ns]", "[Timestamp('2020-01-02 00:00:00'), NaT, NaT]"},
		{"(TIMESTAMP '2020-01-02 03:04:05.678')", "datetime64[ns]", "[Timestamp('2020-01-02 03:04:05.678000')]"},
		{"(TIMESTAMPTZ '2020-01-02 03:04:05+02')", "datetime64[ns, UTC]", "[Timestamp('2020-01-02 01:04:05+0000', tz='UTC')]"},
		{"('2020-01-02 03:04:05.123456789'::TIMESTAMP_NS)", "datetime64[ns]", "[Timestamp('2020-01-02 03:04:05.123456789')]"},
		{"(DATE '1066-10-14'), (NULL)", "object", "[datetime.date(1066, 10, 14), None]"},
		{"(TIMESTAMPTZ '1066-10-14 12:00:00Z')", "object", "[datetime.datetime(1066, 10, 14, 12, 0, tzinfo=datetime.timezone.utc)]"},
		{"(TIME '01:02:03.5')", "object", "['01:02:03.5']"},
		{"(INTERVAL 3 DAY)", "object", "['P3D']"},
		{"([1, NULL]), ([]), (NULL)", "object", "[[1, None], [], None]"},
		{"({'a': 1, 'b': ['x']})", "object", "[{'a': 1, 'b': ['x']}]"},
		{`('{"a": 12345678901234567890}'::JSON)`, "object", "[{'a': 12345678901234567890}]"},
	} {
		path, a := p.frame("SELECT v FROM (VALUES "+c.values+") t(v)", 1000, 1<<20)
		if a.Fault != nil {
			t.Errorf("%s: %v", c.values, a.Fault)
			continue
		}
		paths = append(paths, path)
		want = append(want, c.values+" is "+c.kind+" "+c.want)
		code += fmt.Sprintf("df = cove_frame(%q)\nprint(%q, df['v'].dtype, [v.item() if hasattr(v, 'item') else v for v in df['v']])\n", path, c.values+" is")
	}
	// One interpreter for all, since it takes long to start.
	got := strings.Split(readFrame(t, paths[0], code), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFrameOfManyRows(t *testing.T) {
	p := loadPeer(t)
	path, a := p.frame(`SELECT i, CASE WHEN i > 100000 AND i % 3 > 0 THEN 'row ' || i || repeat('x', (i % 100)::INT) END AS s, CASE WHEN i % 5 > 0 THEN i * 1.5::DOUBLE END AS f, i AS i FROM range(200000) r(i)`, 10_000_000, 1<<30)
	if a.Fault != nil || a.Rows.Count != 200_000 || a.Rows.Cut != "" || a.Rows.Rows != nil {
		t.Fatalf("%+v, %+v", a.Fault, a.Rows.Cut)
	}
	got := readFrame(t, path, `
x = df.iloc[:, 0]
s = ["row %d" % i + "x" * (i % 100) if i > 100000 and i % 3 else None for i in range(200000)]
print(df.shape, list(df.columns), (x == range(200000)).all(), list(df["s"]) == s, df["f"].isna().sum(), df["f"].sum())
`)
	if want := "(200000, 4) ['i', 's', 'f', 'i'] True True 40000 24000000000.0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFrameIsCut(t *testing.T) {
	p := loadPeer(t)
	path, a := p.frame("SELECT i, 'text' AS s FROM range(100000) r(i)", 10, 1<<20)
	if a.Fault != nil || a.Rows.Count != 10 || a.Rows.Cut != ask.CutRows {
		t.Fatalf("%+v, %+v", a.Fault, a.Rows)
	}
	if got := readFrame(t, path, "print(df.shape)"); got != "(10, 2)" {
		t.Error(got)
	}
	path, a = p.frame("SELECT i, repeat('x', 1000) AS s, i::HUGEINT AS h FROM range(1000000) r(i)", 10_000_000, 9<<20)
	if a.Fault != nil || a.Rows.Cut != ask.CutBytes || a.Rows.Count < 8000 {
		t.Fatalf("%+v, %+v", a.Fault, a.Rows)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 9<<20 || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if got := readFrame(t, path, "print(len(df) == len(df.dropna()), set(df['s'].str.len()), (df['h'] == range(len(df))).all())"); got != "True {1000} True" {
		t.Error(got)
	}
	path, a = p.frame("SELECT 1 AS a, repeat('x', 10000000) AS s", 10, 5000)
	if a.Fault != nil || a.Rows.Cut != ask.CutBytes || a.Rows.Count != 0 {
		t.Fatalf("%+v, %+v", a.Fault, a.Rows)
	}
	if got := readFrame(t, path, "print(df.shape, list(df.columns), list(map(str, df.dtypes)))"); got != "(0, 2) ['a', 's'] ['int32', 'object']" {
		t.Error(got)
	}
	path, a = p.frame("SELECT 1 AS a WHERE false", 10, 5000)
	if got := readFrame(t, path, "print(df.shape)"); a.Fault != nil || got != "(0, 1)" {
		t.Error(a.Fault, got)
	}
}

func TestFrameFaults(t *testing.T) {
	p := loadPeer(t)
	dir := t.TempDir()
	there, link := filepath.Join(dir, "there"), filepath.Join(dir, "link")
	if err := os.WriteFile(there, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(there, link+".new"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path, sql string
		kind      ask.Kind
	}{
		"a file is there":  {there, "SELECT 1", ask.File},
		"a link is there":  {link, "SELECT 1", ask.File},
		"no directory":     {filepath.Join(dir, "none", "x"), "SELECT 1", ask.File},
		"a directory":      {dir, "SELECT 1", ask.File},
		"not a SELECT":     {filepath.Join(dir, "x"), "CREATE TABLE x (a INT)", ask.NotSelect},
		"it fails at once": {filepath.Join(dir, "x"), "SELECT 'x'::INT", ask.Failed},
		"it fails later":   {filepath.Join(dir, "x"), "SELECT CASE WHEN i = 90000 THEN error('boom') ELSE i END FROM range(100000) r(i)", ask.Failed},
		"a full disk":      {"/dev/full", "SELECT 1", ask.File},
	} {
		a := p.ask(ask.Request{Verb: ask.VerbFrame, Frame: &ask.Frame{SQL: c.sql, MaxRows: 1000_000, MaxBytes: 1 << 20, Path: c.path}})
		if a.Fault == nil || a.Fault.Kind != c.kind || a.Rows != nil {
			t.Errorf("%s: %+v", name, a.Fault)
		}
	}
	var left []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{"link.new", "there"}, left); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if content, err := os.ReadFile(there); err != nil || string(content) != "mine" {
		t.Errorf("%q, %v", content, err)
	}
}
