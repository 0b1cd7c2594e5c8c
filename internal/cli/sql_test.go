package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/cli"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// orders is a file of a user's.
func orders(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "orders.csv")
	write(t, path, "id,status\n1,paid\n")
	return path
}

func TestQuestions(t *testing.T) {
	b, far := newBox(t), served(t)
	file := orders(t)
	away := newBox(t).with("COVE_URL", far.ready.URL, "COVE_API_KEY", strings.TrimSpace(read(t, far.ready.KeyFile)))
	for name, at := range map[string]*box{"in process": b, "over HTTP": away} {
		t.Run(name, func(t *testing.T) {
			b := *at
			b.t = t
			if got := b.ok("sql", "--file", file, "SELECT 1"); got != "query\n--------\nSELECT 1\n(1 row)\n" {
				t.Errorf("%q", got)
			}
			if got := b.ok("sql", "--csv", "SELECT 1"); got != "query\r\nSELECT 1\r\n" {
				t.Errorf("%q", got)
			}
			if got := b.ok("sql", "rows 3"); got != "n\n-\n1\n2\n3\n(3 rows)\n" {
				t.Errorf("%q", got)
			}
			var run struct {
				Status string              `json:"status"`
				Rows   [][]json.RawMessage `json:"rows"`
			}
			if err := json.Unmarshal([]byte(b.ok("sql", "SELECT 2", "--json")), &run); err != nil || run.Status != "success" || len(run.Rows) != 1 {
				t.Errorf("%+v, %v", run, err)
			}
			if got := b.input("SELECT 3\n").ok("sql", "-"); !strings.Contains(got, "SELECT 3\n(1 row)") {
				t.Errorf("%q", got)
			}
			if got := b.ok("run-python", "--file", file+"=o", "1 + 1"); !strings.Contains(got, "1 + 1\n") {
				t.Errorf("%q", got)
			}
			b.fails(1, "the question asked to fail [SQL_EXECUTION_ERROR]", "sql", "fail")
			b.fails(1, "the question asked to fail [PYTHON_EXECUTION_ERROR]", "run-python", "fail")
			b.fails(124, "RUNNER_TIMEOUT", "sql", "--timeout", "1s", "hang")
			b.fails(125, "the runner is down; try again [SANDBOX_UNAVAILABLE]", "sql", "broken")
			if got := b.ok("sql", "--explain", "SELECT 1"); got != "allow\n" {
				t.Errorf("%q", got)
			}
		})
	}
	if got := far.run("--json", "sandbox", "ls").out; got != "" {
		t.Errorf("sessions are left: %s", got)
	}
}

func TestQuestionsThatCannotBeAsked(t *testing.T) {
	b := newBox(t)
	file := orders(t)
	dir := filepath.Dir(file)
	write(t, filepath.Join(dir, "orders.json"), "[]")
	write(t, filepath.Join(dir, "orders.txt"), "")
	pipe := filepath.Join(dir, "pipe.csv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"too few arguments":           {"sql"},
		"too many arguments":          {"sql", "a", "b"},
		"unknown flag: --fil":         {"sql", "--fil", "x", "SELECT 1"},
		"no such file":                {"sql", "--file", filepath.Join(dir, "none.csv"), "SELECT 1"},
		"both be the table orders":    {"sql", "--file", file, "--file", filepath.Join(dir, "orders.json"), "SELECT 1"},
		"--file: goes without":        {"sql", "--file", file, "--dataset", "d", "SELECT 1"},
		"--csv: goes without --json":  {"sql", "--csv", "--json", "SELECT 1"},
		"max_rows: 5000":              {"sql", "--max-rows", "5000", "SELECT 1"},
		"timeout_seconds: 120":        {"sql", "--timeout", "2m", "SELECT 1"},
		"--timeout: ":                 {"sql", "--timeout", "soon", "SELECT 1"},
		"--max-output: ":              {"sql", "--max-output", "much", "SELECT 1"},
		"a run of type sql needs sql": {"sql", ""},
		"save_as: is for SQL":         {"sql", "--save-as", "x", "SELECT 1"},
		"is not the id of":            {"sql", "-s", "x", "SELECT 1"},
		"--session: names a sandbox":  {"sql", "-s", nobody, "--flavor", "small", "SELECT 1"},
		"unknown flag: --save-as":     {"run-python", "--save-as", "x", "1"},
	} {
		b.fails(125, want, args...)
	}
	b.with("COVE_URL", "http://127.0.0.1:1").fails(125, "cannot be reached", "sql", "SELECT 1")
	far := served(t)
	away := b.with("COVE_URL", far.ready.URL, "COVE_API_KEY", strings.TrimSpace(read(t, far.ready.KeyFile)))
	away.fails(125, "is no file", "sql", "--file", pipe, "SELECT 1") // nobody waits for who writes into it
	away.fails(125, "is neither CSV", "sql", "--file", filepath.Join(dir, "orders.txt"), "SELECT 1")
	away.fails(125, filepath.Join(dir, "none.csv")+`" cannot be read: no such file`, "sql", "--file", filepath.Join(dir, "none.csv"), "SELECT 1")
}

func TestQuestionsInASession(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create")
	b.ok("sql", "-s", id, "--file", "orders.csv=o", "SELECT 1")
	b.ok("sql", "-s", id, "--save-as", "top", "SELECT 1")
	b.ok("run-python", "-s", id, "1")
	if got := b.ok("--json", "sql", "-s", id, "--file", "a=b.csv=o", "SELECT 1"); !strings.Contains(got, `"files":[{"name":"o","path":"a=b.csv"}]`) || !strings.Contains(got, `"session_id":"`+id+`"`) {
		t.Error(got)
	}
}

// grid shows rows as the commands do.
func grid(t *testing.T, form string, head []string, rows ...string) string {
	t.Helper()
	var raw []json.RawMessage
	for _, r := range rows {
		raw = append(raw, json.RawMessage(r))
	}
	var out bytes.Buffer
	if err := cli.ShowGrid(&out, form, head, raw); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestGrid(t *testing.T) {
	got := grid(t, "table", []string{"name", "n", "any"},
		`["ada",1,null]`, `[null,-22.5,"x"]`, `["\u001b[2J\u202e\nb",null,[1, {"a": null}]]`, `["",12345678901234567890,true]`)
	want := strings.Join([]string{
		`name                                 n  any`,
		`----------------  --------------------  --------------`,
		`ada                                  1  NULL`,
		`NULL                             -22.5  x`,
		`\x1b[2J\u202e\nb                  NULL  [1,{"a":null}]`,
		`                  12345678901234567890  true`,
		"",
	}, "\n")
	if got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	for _, odd := range []string{`{"a":1}`, `7`, `[1,2,3]`, `[]`, `nonsense`, `[`} {
		if got := grid(t, "table", []string{"a"}, odd); strings.Count(got, "\n") != 3 {
			t.Errorf("%s is shown as %q", odd, got)
		}
	}
	long := strings.Repeat("x", 5000)
	if got := grid(t, "table", []string{"a", "b"}, `["`+long+`",1]`, `["y",2]`); len(got) > 6000 || !strings.Contains(got, long+"  1") {
		t.Errorf("a long cell makes %d bytes", len(got))
	}
}

func TestCSV(t *testing.T) {
	rows := []string{`["a,b",1,null]`, `["say \"hi\"","",true]`, `["two\nlines"," lead",[1]]`, `["=1+1","\u001b[2J",1.50]`}
	want := "h,\"i,j\",k\r\n\"a,b\",1,\r\n\"say \"\"hi\"\"\",\"\",true\r\n\"two\nlines\",\" lead\",[1]\r\n=1+1,\x1b[2J,1.50\r\n"
	if got := grid(t, "csv", []string{"h", "i,j", "k"}, rows...); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := grid(t, "csv on a terminal", []string{"\x1b"}, rows[3]); strings.Contains(got, "\x1b") || !strings.Contains(got, `\x1b[2J`) {
		t.Errorf("%q", got)
	}
}

func TestSentencesAboutRuns(t *testing.T) {
	for want, e := range map[string]*cove.RunError{
		"no [SQL_EXECUTION_ERROR]": {Type: cove.RunSQLFailed, Message: "no"},
		"blocked: no (line 2, column 3); rule sql.table [SQL_POLICY_VIOLATION]": {
			Type: cove.RunSQLPolicy, Message: "no", Refusal: &cove.Refusal{Rule: "sql.table", Line: 2, Column: 3},
		},
		"blocked: no at line 2; rule sql.table [SQL_POLICY_VIOLATION]": {
			Type: cove.RunSQLPolicy, Message: "no at line 2; rule sql.table", Refusal: &cove.Refusal{Rule: "sql.table", Line: 2, Column: 3},
		},
	} {
		if got := cli.RunError(e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	run := func(rows, most int) string {
		return cli.CutNote(&cove.Run{Request: cove.RunRequest{MaxRows: most}, Answer: &cove.RunAnswer{Rows: make([]json.RawMessage, rows)}})
	}
	for want, got := range map[string]string{
		"200 rows, cut; --max-rows shows more":              run(200, 0),
		"1000 rows, cut; that is the most":                  run(1000, 1000),
		"7 rows, cut: the rest is longer than --max-output": run(7, 0),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDecisions(t *testing.T) {
	var out bytes.Buffer
	err := cli.ShowDecision(&out, &cove.RunDecision{
		Refusal: &cove.Refusal{Rule: "sql.table", Reason: "no \x1b", Line: 1, Column: 2}, Tables: []string{"a.b", "c.d"}, Imports: []string{"os"},
	})
	if got, want := out.String(), "deny\n  blocked: no \\x1b (line 1, column 2); rule sql.table\n  tables: a.b, c.d\n  imports: os\n"; got != want || cli.ExitCode(err) != 126 {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDatasets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(filepath.Join(dir, "shop"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "shop", "orders.csv"), "id,status\n1,paid\n2,\n")
	b := newBox(t)
	if r := b.run("dataset", "ls"); r.code != 0 || !strings.Contains(r.err, "COVE_DATASETS is not set") {
		t.Errorf("%+v", r)
	}
	b = b.with("COVE_DATASETS", dir)
	b.serve(daemon.Options{Version: "dev"})
	away := newBox(t).with("COVE_URL", b.ready.URL, "COVE_API_KEY", strings.TrimSpace(read(t, b.ready.KeyFile)))
	for _, at := range []*box{b, away} {
		if got := at.ok("dataset", "ls"); !strings.HasPrefix(got, "ID ") || !strings.Contains(got, "\nshop  orders  ") {
			t.Errorf("%s", got)
		}
		if got := at.ok("--json", "dataset", "ls"); !strings.Contains(got, `{"id":"shop",`) {
			t.Errorf("%s", got)
		}
		got := at.ok("dataset", "schema", "shop")
		for _, want := range []string{"shop.orders (orders.csv, size 30, 2 rows)\n", "\nid      BIGINT\n", "\n 2  NULL\n", "\nshop.torn (torn.csv): cannot be asked: it is empty\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in\n%s", want, got)
			}
		}
		if got := at.ok("--json", "dataset", "schema", "shop"); !strings.Contains(got, `"row_count":2`) {
			t.Errorf("%s", got)
		}
		at.fails(5, "there is no dataset", "dataset", "schema", "none")
	}
}

func TestGenerateDatasets(t *testing.T) {
	b := newBox(t)
	dir := filepath.Join(t.TempDir(), "new")
	if got := b.ok("dataset", "generate", dir); got != dir+"\n" {
		t.Errorf("%q", got)
	}
	if got := b.with("COVE_DATASETS", dir).ok("dataset", "ls"); !strings.Contains(got, "ecommerce  inventory,order_items,orders") {
		t.Errorf("%s", got)
	}
	b.fails(69, "the datasets cannot be written to", "dataset", "generate", filepath.Join(dir, "registry.json"))
	b.fails(2, "too few", "dataset", "schema")
}

func TestGrants(t *testing.T) {
	b := served(t)
	out := b.ok("--json", "key", "create", "--scope", "runs", "--dataset", "shop,other", "--table", "shop.orders", "--columns", "shop.orders=id,status", "--columns", "shop.items=id", "--max-rows", "10", "--sql-only")
	const want = `"data":{"datasets":["shop","other"],"tables":["shop.orders"],"columns":{"shop.items":["id"],"shop.orders":["id","status"]},"max_rows":10,"sql_only":true}`
	if !strings.Contains(out, want) {
		t.Errorf("%s", out)
	}
	for field, args := range map[string][]string{
		"--table: ": {"--table", "orders"}, "--columns: ": {"--columns", "shop.orders"}, "--columns: \"orders=id": {"--columns", "orders=id"}, "--max-rows: ": {"--max-rows", "-1"},
	} {
		b.fails(2, field, append([]string{"key", "create", "--scope", "runs"}, args...)...)
	}
}
