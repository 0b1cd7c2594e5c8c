package pyrun_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/datarun/pyrun"
)

// TestTables: files as people have them become frames, or say in one sentence why not.
func TestTables(t *testing.T) {
	newHost(t)
	const look = `import json
out = []
for name in dfs:
    try:
        df = dfs[name]
        out.append([name, json.dumps([list(df.columns), json.loads(df.to_json(orient="values"))], ensure_ascii=False)])
    except Exception as e:
        out.append([name, type(e).__name__ + ": " + str(e)])
result_rows = sorted(out)`
	cases := map[string][2]string{
		"orders.csv":   {orders, `[["id", "status", "amount"], [[1, "open", 2.5], [2, "paid", null], [3, "paid", 4.0]]]`},
		"bom.csv":      {"\ufeffa,b\n1,2\n", `[["a", "b"], [[1, 2]]]`},
		"quotes.csv":   {"a,b\n\"x, \"\"y\"\"\n2\",3\n", `[["a", "b"], [["x, \"y\"\n2", 3]]]`},
		"semi.csv":     {"a;b\n1,5;x\n", `[["a", "b"], [["1,5", "x"]]]`},
		"tabs.csv":     {"a\tb\n1\t2\n", `[["a", "b"], [[1, 2]]]`},
		"bars.csv":     {"a|\"b,c\"\n1|2\n", `[["a", "b,c"], [[1, 2]]]`},
		"one.csv":      {"a\nx\n", `[["a"], [["x"]]]`},
		"head.csv":     {"a,b\n", `[["a", "b"], []]`},
		"twice.csv":    {"a,a\n1,2\n", `[["a", "a.1"], [[1, 2]]]`},
		"mixed.csv":    {"a\n1\nx\n", `[["a"], [["1"], ["x"]]]`},
		"empty.csv":    {"", "TableProblem: empty.csv is empty"},
		"blank.csv":    {"\ufeff \n\n", "TableProblem: blank.csv is empty"},
		"latin.csv":    {"a\n\xe9\n", "TableProblem: latin.csv is not UTF-8 text; save it as UTF-8"},
		"utf16.csv":    {"\xff\xfea\x00\n\x00", "TableProblem: utf16.csv is not UTF-8 text; save it as UTF-8"},
		"ragged.csv":   {"a,b\n1,2\n1,2,3,4\n", "TableProblem: ragged.csv cannot be read as csv: Error tokenizing data. C error: Expected 2 fields in line 3, saw 4"},
		"list.json":    {` [{"a": 1, "b": {"c": [1]}}, {"a": null}]`, `[["a", "b"], [[1.0, {"c": [1]}], [null, null]]]`},
		"lines.json":   {"\ufeff{\"a\": 1}\n\n{\"a\": 2}\n", `[["a"], [[1], [2]]]`},
		"single.json":  {"{\n  \"a\": 1\n}\n", `[["a"], [[1]]]`},
		"numbers.json": {"[1, 2]", "TableProblem: numbers.json is not a list of objects"},
		"nothing.json": {" \n", "TableProblem: nothing.json is empty"},
		"broken.json":  {"[{\"a\": 1}", "TableProblem: broken.json cannot be read as json: Expecting ',' delimiter: line 1 column 10 (char 9)"},
		"x.parquet":    {"PAR1", "TableProblem: x.parquet is Parquet, which Python has read by DuckDB, and this build has none"},
	}
	files := map[string]string{}
	for name, c := range cases {
		files[name] = c[0]
	}
	cases["gone.csv"] = [2]string{"", "TableProblem: there.csv cannot be read: No such file or directory"}
	cases["odd.csv"] = [2]string{"", "TableProblem: odd.csv has two names"}
	a := ask(t, look, files, func(q *pyrun.Question) {
		q.MaxRows, q.MaxOutput = 100, 1<<19
		q.Tables = append(q.Tables, pyrun.Table{Name: "odd", Path: "/odd.csv", Format: pyrun.CSV, Problem: "odd.csv has two names"})
		q.Tables = append(q.Tables, pyrun.Table{Name: "gone", Path: "/nowhere/gone.csv", File: "there.csv", Format: pyrun.CSV})
	}).Answer
	if a.Error != nil {
		t.Fatal(a.Error)
	}
	got, want := map[string]string{}, map[string]string{}
	for name, c := range cases {
		want[strings.TrimSuffix(name, filepath.Ext(name))] = c[1]
	}
	for _, row := range a.Rows {
		var one [2]string
		if err := json.Unmarshal(row, &one); err != nil {
			t.Fatal(err)
		}
		got[one[0]] = one[1]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestNames: the code has each table under a name that code can have.
func TestNames(t *testing.T) {
	files := map[string]string{}
	for _, name := range []string{"2024 sales", "orders", "class", "list", "result", "a-b", "a_b", "größe", "²", "pd"} {
		files[name+".csv"] = "n\n" + name + "\n"
	}
	a := ask(t, `# größe speaks of all
import sys
own = {k: v.n[0] for k, v in list(globals().items()) if isinstance(v, pd.DataFrame)}
dfs["new"] = 1
del dfs["²"]
try:
    type(dfs)([])
except TypeError as e:
    own["again"] = str(e)
own["dfs"] = [len(dfs), "orders" in dfs, "²" in dfs, orders is dfs["orders"], str(dfs)[:6]]
result = dict(sorted(own.items()))`, files).Answer
	want := []string{"_2024_sales", "a_b", "again", "class_", "dfs", "größe", "list_", "orders", "pd_", "result_"}
	if diff := cmp.Diff(want, a.Columns); diff != "" || a.Error != nil {
		t.Fatalf("%+v %s %s", a.Error, diff, a.Stderr)
	}
	if got := string(a.Rows[0]); got != `["2024 sales","a_b","there is one dfs","class",[10,true,false,true,"dfs of"],"größe","list","orders","pd","result"]` {
		t.Error(got)
	}
}

// TestColumns: of a table with a list of columns the code sees no other.
func TestColumns(t *testing.T) {
	only := func(columns ...string) func(*pyrun.Question) {
		return func(q *pyrun.Question) {
			for i := range q.Tables {
				q.Tables[i].Columns = columns
			}
		}
	}
	files := map[string]string{"orders.csv": orders, "a.json": `[{"amount": 1, "status": 2, "id": 3}]`, "b.json": `[{"id": 1}]`}
	a := ask(t, "try:\n    dfs['b']\nexcept Exception as e:\n    why = str(e)\n[list(dfs['orders']), list(dfs['a']), [why]]", files, only("status", "id")).Answer
	if got := fmt.Sprintf("%s", a.Rows); a.Error != nil || got != `[["id","status"] ["status","id"] ["b.json has no column status",null]]` {
		t.Errorf("%+v %s", a.Error, got)
	}
}

// TestOnlyWhatIsNamedIsLoaded: a broken table that the code does not speak of does no
// harm, and one that it does is told.
func TestOnlyWhatIsNamedIsLoaded(t *testing.T) {
	files := map[string]string{"orders.csv": orders, "broken.csv": ""}
	if a := ask(t, "broken = len(orders)\nbroken", files).Answer; a.Error != nil || string(a.Rows[0]) != "[3]" {
		t.Errorf("%+v", a)
	}
	for _, code := range []string{"broken", "result = broken", "name = 'brok' + 'en'\ndfs[name]"} {
		a := ask(t, code, files).Answer
		if diff := cmp.Diff(&cove.RunError{Type: cove.RunInvalidInput, Message: "broken.csv is empty"}, a.Error); diff != "" || a.Status != "error" {
			t.Errorf("%s: %s", code, diff)
		}
	}
	if err := os.Remove("orders.csv"); err == nil {
		t.Error("something was written here")
	}
}
