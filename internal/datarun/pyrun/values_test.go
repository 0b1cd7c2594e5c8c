package pyrun_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/datarun/pyrun"
)

// told has one interpreter tell many results, each as an answer in JSON. Each is what
// a piece of code leaves.
func told(t *testing.T, codes []string) []string {
	t.Helper()
	code := `import sys, json, decimal, uuid, fractions
from datetime import *
teller = sys.modules["cove_run"]
out = []
for text in ` + pythonList(t, codes) + `:
    home = {}
    exec(text, dict(globals(), **{"__name__": "x"}), home)
    teller.home = home
    try:
        a = teller.answer()
        out.append(json.dumps([a.get("columns"), a.get("rows"), a.get("problem")], separators=(",", ":"), ensure_ascii=False))
    except Exception as e:
        out.append(type(e).__name__ + ": " + str(e))
teller.home = globals()

result = out
`
	r := ask(t, code, nil, func(q *pyrun.Question) { q.MaxRows, q.MaxOutput = 1000, 900000 })
	if r.Answer.Error != nil {
		t.Fatalf("%+v\n%s", r.Answer.Error, r.Answer.Stderr)
	}
	var lines []string
	for _, row := range r.Answer.Rows {
		var one []string
		if err := json.Unmarshal(row, &one); err != nil || len(one) != 1 {
			t.Fatalf("%s: %v", row, err)
		}
		lines = append(lines, one[0])
	}
	return lines
}

func pythonList(t *testing.T, texts []string) string {
	t.Helper()
	data, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestValues: each value arrives in JSON as SQL's values do.
func TestValues(t *testing.T) {
	cases := [][2]string{
		{`1`, `1`},
		{`2**70`, `1180591620717411303424`},
		{`-2**63`, `-9223372036854775808`},
		{`True`, `true`},
		{`np.bool_(False)`, `false`},
		{`np.int8(-3)`, `-3`},
		{`np.uint64(2**64-1)`, `18446744073709551615`},
		{`0.1`, `0.1`},
		{`np.float32(0.1)`, `0.1`},
		{`np.float64(1e300)`, `1e+300`},
		{`float("nan")`, `"NaN"`},
		{`float("inf")`, `"Infinity"`},
		{`-np.inf`, `"-Infinity"`},
		{`pd.NA`, `null`},
		{`pd.NaT`, `null`},
		{`(np.array(5), np.array("x"))`, `[5,"x"]`},
		{`np.datetime64("9999999-01-01")`, `"9999999-01-01"`},
		{`"é\u0000\u2028"`, "\"é\\u0000\u2028\""},
		{`"\ud800"`, `"?"`},
		{`decimal.Decimal("12345678901234567890123456789.12345")`, `"12345678901234567890123456789.12345"`},
		{`decimal.Decimal("1E+5")`, `"100000"`},
		{`decimal.Decimal("1E+99999")`, `"1E+99999"`},
		{`decimal.Decimal("sNaN")`, `"NaN"`},
		{`decimal.Decimal("-Infinity")`, `"-Infinity"`},
		{`date(2020, 1, 2)`, `"2020-01-02"`},
		{`time(1, 2, 3)`, `"01:02:03"`},
		{`time(1, 2, 3, 500000)`, `"01:02:03.5"`},
		{`datetime(2020, 1, 2, 3, 4, 5, 678000)`, `"2020-01-02T03:04:05.678"`},
		{`datetime(2020, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2)))`, `"2020-01-02T01:04:05Z"`},
		{`pd.Timestamp("2020-01-02 03:04:05.678")`, `"2020-01-02T03:04:05.678"`},
		{`pd.Timestamp("2020-01-02 03:04:05.000000001")`, `"2020-01-02T03:04:05.000000001"`},
		{`pd.Timestamp("2020-01-02 03:04", tz="Europe/Berlin")`, `"2020-01-02T02:04:00Z"`},
		{`np.datetime64("2020-01-02")`, `"2020-01-02T00:00:00"`},
		{`timedelta(days=3)`, `"P3D"`},
		{`timedelta(days=1, hours=2, minutes=3, seconds=4.5)`, `"P1DT2H3M4.5S"`},
		{`timedelta(0)`, `"PT0S"`},
		{`timedelta(seconds=-90)`, `"-PT1M30S"`},
		{`pd.Timedelta(1, "ns")`, `"PT0.000000001S"`},
		{`np.timedelta64(90, "s")`, `"PT1M30S"`},
		{`timedelta.max`, `"P999999999DT23H59M59.999999S"`},
		{`b"\x00\xff"`, `"AP8="`},
		{`uuid.UUID(int=1)`, `"00000000-0000-0000-0000-000000000001"`},
		{`1+2j`, `"(1+2j)"`},
		{`pd.Period("2020-01")`, `"2020-01"`},
		{`pd.Interval(0, 1)`, `"(0, 1]"`},
		{`fractions.Fraction(1, 3)`, `"1/3"`},
		{`(1, "a")`, `[1,"a"]`},
		{`np.array(3)`, `3`},
		{`print`, `"<built-in function print>"`},
		{`{}`, `{}`},
	}
	var texts []string
	for _, c := range cases {
		texts = append(texts, "result = "+c[0])
	}
	got := told(t, texts)
	for i, c := range cases {
		if want := `[["result"],[[` + c[1] + `]],null]`; got[i] != want {
			t.Errorf("%s gives %s, want %s", c[0], got[i], want)
		}
	}
}

// TestShapes: what the code leaves becomes a table, by each of the ways.
func TestShapes(t *testing.T) {
	var texts, wants []string
	for way, cases := range map[string][][2]string{
		"result": {
			{`[1, 2]`, `[["result"],[[1],[2]],null]`},
			{`[]`, `[[],[],null]`},
			{`[np.array(1), [2]]`, `[["result"],[[1],[2]],null]`},
			{`[[1, "a"], [2, None]]`, `[["column_1","column_2"],[[1,"a"],[2,null]],null]`},
			{`[(1, 2), (3,)]`, `[["column_1","column_2"],[[1,2],[3,null]],null]`},
			{`[{"a": 1}, {"b": [1, {"c": None}]}]`, `[["a","b"],[[1,null],[null,[1,{"c":null}]]],null]`},
			{`{"a": 1, 2: [3]}`, `[["a","2"],[[1,[3]]],null]`},
			{`{3}`, `[["result"],[[3]],null]`},
			{`np.array([[1, 2], [3, 4]])`, `[["column_1","column_2"],[[1,2],[3,4]],null]`},
			{`np.array([1.5, np.nan])`, `[["result"],[[1.5],["NaN"]],null]`},
			{`np.array(["2020-01-02"], dtype="datetime64[D]")`, `[["result"],[["2020-01-02T00:00:00"]],null]`},
			{`pd.Series([1, None])`, `[["result"],[[1.0],[null]],null]`},
			{`pd.Series([1, 2], name="n")`, `[["n"],[[1],[2]],null]`},
			{`pd.Series(["x", "y", "x"]).value_counts().rename("n")`, `[["index","n"],[["x",2],["y",1]],null]`},
			{`pd.Index([1, 2])`, `[["result"],[[1],[2]],null]`},
			{`pd.Index([1, 2], name="k")`, `[["k"],[[1],[2]],null]`},
			{`pd.array([1, None])`, `[["result"],[[1],[null]],null]`},
			{`pd.DataFrame({"a": [1]}, index=["x"])`, `[["index","a"],[["x",1]],null]`},
			{`pd.DataFrame({"a": [1, 2]})[1:]`, `[["a"],[[2]],null]`},
			{`pd.DataFrame({"a": [1], "b": ["x"]}).set_index("b")`, `[["b","a"],[["x",1]],null]`},
			{`pd.DataFrame({"a": [1], "b": ["x"], "c": [2]}).set_index(["b", "c"])`, `[["b","c","a"],[["x",2,1]],null]`},
			{`pd.DataFrame([[1, 2]], columns=["a", "a"])`, `[["a","a"],[[1,2]],null]`},
			{`pd.DataFrame([[1, 2]], columns=[0, pd.Timestamp("2020-01-02")])`, `[["0","2020-01-02 00:00:00"],[[1,2]],null]`},
			{`pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "sum")]))`, `[["a_sum"],[[1]],null]`},
			{`pd.DataFrame({"c": pd.Categorical(["x", None]), "i": pd.array([1, None], dtype="Int64"), "d": pd.to_datetime(["2020-01-02", None]), "f": [np.inf, np.nan]})`, `[["c","i","d","f"],[["x",1,"2020-01-02T00:00:00","Infinity"],[null,null,null,null]],null]`},
			{`pd.DataFrame()`, `[[],[],null]`},
			{`pd.DataFrame([range(20000)])`, `[null,null,"the result has 20000 columns; the most is 16384"]`},
			{`pd.DataFrame([range(2000)], columns=["x" * 900 + str(i) for i in range(2000)])`, `[null,null,"the names of the result's 2000 columns take more than 1048576 bytes; give it shorter names or fewer columns"]`},
		},
		"result_df": {
			{`pd.DataFrame({"a": [1]})`, `[["a"],[[1]],null]`},
			{`pd.Series([1], name="s")`, `[["s"],[[1]],null]`},
			{`[1]`, `Wrong: result_df is a list, not a frame`},
			{`5`, `Wrong: result_df is an int, not a frame`},
			{`None`, `[[],[],null]`},
		},
		"result_rows": {
			{`result_rows, result_columns = [[1, 2], [3, 4]], ["x", "y"]`, `[["x","y"],[[1,2],[3,4]],null]`},
			{`result_rows, result_columns = [{"y": 2, "x": 1}], ["x", "y"]`, `[["x","y"],[[1,2]],null]`},
			{`result_rows, result_columns = [], ["x"]`, `[["x"],[],null]`},
			{`result_rows, result_columns = [[1, 2]], ["x"]`, `Wrong: row 1 of the result has 2 values for 1 columns`},
			{`[[1, 2]]`, `[["column_1","column_2"],[[1,2]],null]`},
			{`(i for i in range(2))`, `[["result"],[[0],[1]],null]`},
			{`pd.DataFrame({"a": [1]})`, `[["a"],[[1]],null]`},
			{`"abc"`, `Wrong: result_rows is a str, not a list of rows`},
			{`7`, `Wrong: result_rows is an int, not a list of rows`},
		},
	} {
		for _, c := range cases {
			texts, wants = append(texts, way+" = "+c[0]), append(wants, c[1])
			if strings.Contains(c[0], "result_columns") {
				texts[len(texts)-1] = c[0]
			}
		}
	}
	for i, got := range told(t, texts) {
		if got != wants[i] {
			t.Errorf("%s gives\n\t%s, want\n\t%s", texts[i], got, wants[i])
		}
	}
}

// TestWays: result_df comes before result_rows, that before result, and that before
// the last expression. The last one is told by an interpreter as it is asked.
func TestWays(t *testing.T) {
	const ways = "import sys, json\nteller = sys.modules['cove_run']\nhome, out = dict(result_df=pd.DataFrame({'way': ['df']}), result_rows=[['rows']], result_columns=['way'], result={'way': 'result'}), []\n" +
		"for name in list(home):\n    teller.home = home\n    out += teller.answer()['rows']\n    home[name] = None\nteller.home = {}\n"
	for name, c := range map[string]struct {
		code    string
		columns []string
		rows    string
	}{
		"in turn":         {ways + "out", []string{"column_1"}, `["df"] ["rows"] ["result"] ["result"]`},
		"last expression": {"result_df = None\nresult = None\n{'way': 'last'}", []string{"way"}, `["last"]`},
		"nothing":         {"_ = 5\nNone", []string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := ask(t, c.code, nil).Answer
			got := ""
			for _, r := range a.Rows {
				got += " " + string(r)
			}
			if a.Error != nil || a.Status != "success" || a.Rows == nil || a.Types != nil || a.Truncated || strings.TrimSpace(got) != c.rows || cmp.Diff(c.columns, a.Columns) != "" {
				t.Errorf("%+v %s", a, a.Rows)
			}
		})
	}
}

// TestCut: rows and bytes are cut, and it is said.
func TestCut(t *testing.T) {
	t.Run("rows and output", func(t *testing.T) {
		t.Parallel()
		a := ask(t, "import sys\nprint('é' * 100_000)\nprint('warned', file=sys.stderr)\npd.DataFrame({'n': range(10_000_000)})", nil).Answer
		if a.Error != nil || a.RowCount != 5 || !a.Truncated || string(a.Rows[4]) != "[4]" || cmp.Diff([]string{"int64"}, a.Types) != "" {
			t.Errorf("%+v", a)
		}
		if len(a.Stdout) > 4<<10 || !strings.HasSuffix(a.Stdout, "é... (output truncated)") || a.Stderr != "warned\n" {
			t.Errorf("%q %q %+v", a.Stdout, a.Stderr, a.Error)
		}
	})
	const code = `import sys
teller, out = sys.modules["cove_run"], []
for teller.home in [{"result": v} for v in ([1, 2, 3, 4, 5], ["x" * 1500] * 5, [["é" * 100_000, 1], ["b", 2]], [[list(range(100_000))]])]:
    a = teller.answer()
    out.append([len(a["rows"]), a["truncated"], [str(c)[-24:] for c in (a["rows"] or [[]])[0]]])
teller.home = {}
out`
	a := ask(t, code, nil).Answer
	want := []string{`[5,false,["1"]]`, `[2,true,["xxxxxxxxxxxxxxxxxxxxxxxx"]]`, `[2,true,["éé... (output truncated)","1"]]`, `[0,true,[]]`}
	for i, row := range a.Rows {
		if string(row) != want[i] {
			t.Errorf("%d: %s, want %s", i, row, want[i])
		}
	}
	if a.Error != nil || len(a.Rows) != len(want) {
		t.Errorf("%+v", a)
	}
}
