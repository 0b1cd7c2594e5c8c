package dataruns

import (
	"strings"

	"github.com/cove-sandbox/cove"
)

// valueCases are about values in JSON: the same whatever runs the question.
func valueCases() []testCase {
	return []testCase{
		{"sql", valuesSQL},
		{"python", valuesPython},
		{"names", valueNames},
		{"rows_cut", valueRowsCut},
		{"bytes_cut", valueBytesCut},
		{"one_long_cell", valueLongCell},
	}
}

func valuesSQL(r *rig) {
	table := []struct{ expr, want string }{
		{"1::TINYINT", `1`},
		{"9223372036854775807", `9223372036854775807`},
		{"170141183460469231731687303715884105727::HUGEINT", `170141183460469231731687303715884105727`},
		{"1.25::DECIMAL(9,2)", `1.25`},
		{"12345678901234567890123456789.12345::DECIMAL(38,5)", `"12345678901234567890123456789.12345"`},
		{"0.1::DOUBLE", `0.1`},
		{"'NaN'::DOUBLE", `"NaN"`},
		{"'-Infinity'::DOUBLE", `"-Infinity"`},
		{"DATE '2020-01-02'", `"2020-01-02"`},
		{"TIME '01:02:03'", `"01:02:03"`},
		{"TIMESTAMP '2020-01-02 03:04:05.678'", `"2020-01-02T03:04:05.678"`},
		{"'infinity'::DATE", `"infinity"`},
		{"INTERVAL 3 DAY", `"P3D"`},
		{"true", `true`},
		{"NULL", `null`},
		{"'a \"word\" ü'", `"a \"word\" ü"`},
		{"[1, NULL, 3]", `[1,null,3]`},
		{"{'b': 1, 'a': [DATE '2020-01-02']}", `{"b":1,"a":["2020-01-02"]}`},
		{"MAP {'k': 1}", `[{"key":"k","value":1}]`},
		{"'\\x00\\xFF'::BLOB", `"AP8="`},
		{"UUID '00000000-0000-0000-0000-000000000001'", `"00000000-0000-0000-0000-000000000001"`},
	}
	var columns, exprs, want []string
	for i, v := range table {
		name := "c" + string(rune('a'+i))
		columns, exprs, want = append(columns, name), append(exprs, v.expr+" AS "+name), append(want, v.want)
	}
	run := r.ask(r.platform(), sql(shop, "SELECT "+strings.Join(exprs, ", ")))
	r.wantRows(run, strings.Join(columns, ","), "["+strings.Join(want, ",")+"]")
	if len(run.Answer.Types) != len(columns) || run.Answer.Types[0] != "TINYINT" {
		r.Errorf("the types are %q", run.Answer.Types)
	}
}

func valuesPython(r *rig) {
	for name, c := range map[string]struct {
		code, columns string
		rows          []string
	}{
		"result_df":       {"result_df = orders[['id', 'amount']].tail(2)", "id,amount", []string{`[4,null]`, `[5,0.25]`}},
		"result_rows":     {"result_rows = [[1, 'a'], [2, None]]\nresult_columns = ['n', 's']", "n,s", []string{`[1,"a"]`, `[2,null]`}},
		"result":          {"import numpy as np\nresult = np.int64(7)", "result", []string{`[7]`}},
		"last_expression": {"x = 20\nx * 2 + 2", "result", []string{`[42]`}},
		"last_frame":      {"orders[['customer']].head(1)", "customer", []string{`["ada"]`}},
		"by_name":         {"dfs['orders'].shape[0]", "result", []string{`[5]`}},
		"json":            {"int(items['n'].sum())", "result", []string{`[10]`}},
		"precedence":      {"result = 1\nresult_rows = [[2]]\nresult_columns = ['n']\n3", "n", []string{`[2]`}},
		"nan":             {"import math\nresult_rows = [[math.nan, math.inf]]\nresult_columns = ['a', 'b']", "a,b", nil},
		"time":            {"import pandas as pd\nresult_df = pd.DataFrame({'t': [pd.Timestamp('2020-01-02 03:04:05')]})", "t", []string{`["2020-01-02T03:04:05"]`}},
		"nothing":         {"x = 1", "", nil},
	} {
		run := r.ask(r.platform(), python(shop, c.code))
		if c.rows == nil {
			if run.Answer.Error != nil || strings.Join(run.Answer.Columns, ",") != c.columns {
				r.Errorf("%s: %+v", name, run.Answer)
			}
			continue
		}
		before := r.Failed()
		r.wantRows(run, c.columns, c.rows...)
		if !before && r.Failed() {
			r.Errorf("that was %s", name)
		}
	}
}

func valueNames(r *rig) {
	run := r.ask(r.platform(), sql(shop, `SELECT 1 AS a, 2 AS a, 3 AS "two words", count(*) FROM orders`))
	r.wantRows(run, "a,a,two words,count_star()", `[1,2,3,5]`)
}

// valueRowsCut asks for ten million rows.
func valueRowsCut(r *rig) {
	req := sql(shop, "SELECT i FROM range(10000000) t(i)")
	req.MaxRows = 3
	run := r.ask(r.platform(), req)
	r.wantRows(run, "i", `[0]`, `[1]`, `[2]`)
	if !run.Answer.Truncated {
		r.Error("nothing says that rows were cut")
	}
	req.SQL = "SELECT i FROM range(3) t(i)"
	if run = r.ask(r.platform(), req); run.Answer.Truncated {
		r.Error("three rows of three are cut")
	}
	frame := python(shop, "result_rows = [[i] for i in range(100000)]\nresult_columns = ['i']")
	frame.MaxRows = 2
	run = r.ask(r.platform(), frame)
	r.wantRows(run, "i", `[0]`, `[1]`)
	if !run.Answer.Truncated {
		r.Error("nothing says that rows of Python were cut")
	}
}

func valueBytesCut(r *rig) {
	for _, req := range []cove.RunRequest{
		sql(shop, "SELECT repeat('x', 100) AS s FROM range(1000)"),
		python(shop, "print('y' * 100000)\nresult_rows = [['x' * 100]] * 1000\nresult_columns = ['s']"),
	} {
		req.MaxOutput, req.MaxRows = 4*cove.KiB, cove.MaxRunRows
		run := r.ask(r.platform(), req)
		size := 0
		for _, row := range run.Answer.Rows {
			size += len(row)
		}
		if a := run.Answer; a.Error != nil || !a.Truncated || size == 0 || size > 4096 || len(a.Stdout) > 4096+100 || len(a.Stderr) > 4096+100 {
			r.Errorf("%s: %d bytes in %d rows, cut %v, %d bytes printed, %+v", req.Type, size, a.RowCount, a.Truncated, len(a.Stdout), a.Error)
		}
	}
}

func valueLongCell(r *rig) {
	req := sql(shop, "SELECT repeat('x', 100000) AS s")
	req.MaxOutput = 2 * cove.KiB
	run := r.ask(r.platform(), req)
	if a := run.Answer; a.Error != nil || !a.Truncated || a.RowCount > 1 || a.RowCount == 1 && len(a.Rows[0]) > 2048+100 {
		r.Errorf("a cell of 100000 bytes is %d rows, cut %v, %+v", a.RowCount, a.Truncated, a.Error)
	}
}
