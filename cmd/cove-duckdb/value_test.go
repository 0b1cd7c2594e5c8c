//go:build linux

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

func TestValues(t *testing.T) {
	p := loadPeer(t)
	for _, c := range []struct{ sql, kind, want string }{
		{"NULL", "INTEGER", "null"},
		{"true", "BOOLEAN", "true"},
		{"(-128)::TINYINT", "TINYINT", "-128"},
		{"(-32768)::SMALLINT", "SMALLINT", "-32768"},
		{"(-2147483648)::INTEGER", "INTEGER", "-2147483648"},
		{"9007199254740993", "BIGINT", "9007199254740993"},
		{"(-9223372036854775808)::BIGINT", "BIGINT", "-9223372036854775808"},
		{"255::UTINYINT", "UTINYINT", "255"},
		{"65535::USMALLINT", "USMALLINT", "65535"},
		{"4294967295::UINTEGER", "UINTEGER", "4294967295"},
		{"18446744073709551615::UBIGINT", "UBIGINT", "18446744073709551615"},
		{"170141183460469231731687303715884105727::HUGEINT", "HUGEINT", "170141183460469231731687303715884105727"},
		{"(-170141183460469231731687303715884105728)::HUGEINT", "HUGEINT", "-170141183460469231731687303715884105728"},
		{"(-1)::HUGEINT", "HUGEINT", "-1"},
		{"340282366920938463463374607431768211455::UHUGEINT", "UHUGEINT", "340282366920938463463374607431768211455"},
		{"12345678901234567890123456789.12345::DECIMAL(38,5)", "DECIMAL(38,5)", `"12345678901234567890123456789.12345"`},
		{"(-0.05)::DECIMAL(4,2)", "DECIMAL(4,2)", "-0.05"},
		{"12.30::DECIMAL(9,2)", "DECIMAL(9,2)", "12.30"},
		{"123456789012.345::DECIMAL(15,3)", "DECIMAL(15,3)", "123456789012.345"},
		{"123456789012.3456::DECIMAL(16,4)", "DECIMAL(16,4)", `"123456789012.3456"`},
		{"7::DECIMAL(20,0)", "DECIMAL(20,0)", `"7"`},
		{"0.1::FLOAT", "FLOAT", "0.1"},
		{"0.1::DOUBLE", "DOUBLE", "0.1"},
		{"1e300::DOUBLE", "DOUBLE", "1e+300"},
		{"1e20::DOUBLE", "DOUBLE", "100000000000000000000"},
		{"1e-7::DOUBLE", "DOUBLE", "1e-07"},
		{"'-0'::DOUBLE", "DOUBLE", "-0"},
		{"'nan'::DOUBLE", "DOUBLE", `"NaN"`},
		{"'inf'::DOUBLE", "DOUBLE", `"Infinity"`},
		{"'-inf'::FLOAT", "FLOAT", `"-Infinity"`},
		{"DATE '2020-01-02'", "DATE", `"2020-01-02"`},
		{"DATE '0044-03-15 (BC)'", "DATE", `"0044-03-15 (BC)"`},
		{"DATE '12020-01-02'", "DATE", `"12020-01-02"`},
		{"DATE 'infinity'", "DATE", `"infinity"`},
		{"DATE '-infinity'", "DATE", `"-infinity"`},
		{"TIME '01:02:03'", "TIME", `"01:02:03"`},
		{"TIME '24:00:00'", "TIME", `"24:00:00"`},
		{"TIME '01:02:03.50'", "TIME", `"01:02:03.5"`},
		{"'01:02:03.123456789'::TIME_NS", "TIME_NS", `"01:02:03.123456789"`},
		{"TIMETZ '01:02:03+02'", "TIME WITH TIME ZONE", `"01:02:03+02:00"`},
		{"TIMETZ '01:02:03.5-05:30:15'", "TIME WITH TIME ZONE", `"01:02:03.5-05:30:15"`},
		{"TIMESTAMP '2020-01-02 03:04:05.678'", "TIMESTAMP", `"2020-01-02T03:04:05.678"`},
		{"TIMESTAMP '1969-12-31 23:59:59.999999'", "TIMESTAMP", `"1969-12-31T23:59:59.999999"`},
		{"TIMESTAMP 'infinity'", "TIMESTAMP", `"infinity"`},
		{"TIMESTAMP '0044-03-15 (BC) 12:00:00'", "TIMESTAMP", `"0044-03-15 (BC)T12:00:00"`},
		{"TIMESTAMPTZ '2020-01-02 03:04:05+02'", "TIMESTAMP WITH TIME ZONE", `"2020-01-02T01:04:05Z"`},
		{"'2020-01-02 03:04:05'::TIMESTAMP_S", "TIMESTAMP_S", `"2020-01-02T03:04:05"`},
		{"'2020-01-02 03:04:05.678'::TIMESTAMP_MS", "TIMESTAMP_MS", `"2020-01-02T03:04:05.678"`},
		{"'2020-01-02 03:04:05.123456789'::TIMESTAMP_NS", "TIMESTAMP_NS", `"2020-01-02T03:04:05.123456789"`},
		{"INTERVAL 3 DAY", "INTERVAL", `"P3D"`},
		{"INTERVAL '14 months 3 days 04:05:06.7'", "INTERVAL", `"P1Y2M3DT4H5M6.7S"`},
		{"INTERVAL '-90 seconds'", "INTERVAL", `"PT-1M-30S"`},
		{"INTERVAL 0 DAY", "INTERVAL", `"PT0S"`},
		{"INTERVAL 2 HOUR", "INTERVAL", `"PT2H"`},
		{"'a \"quote\", a \\, <b>&, ü, 🦆, ' || chr(10) || chr(9) || chr(13) || chr(1) || chr(127)", "VARCHAR", `"a \"quote\", a \\, <b>&, ü, 🦆, \n\t\r\u0001\u007f"`},
		{"''", "VARCHAR", `""`},
		{"'twelve bytes'", "VARCHAR", `"twelve bytes"`},
		{"'thirteen byte'", "VARCHAR", `"thirteen byte"`},
		{"'b'::ENUM('a', 'b')", "ENUM", `"b"`},
		{"'12345678-9abc-def0-1234-56789abcdef0'::UUID", "UUID", `"12345678-9abc-def0-1234-56789abcdef0"`},
		{"'\\x00\\xFF'::BLOB", "BLOB", `"AP8="`},
		{"'0101010101'::BIT", "BIT", `"0101010101"`},
		{"[1, NULL, 3]", "INTEGER[]", "[1,null,3]"},
		{"[]::INTEGER[]", "INTEGER[]", "[]"},
		{"[[1], [], NULL]", "INTEGER[][]", "[[1],[],null]"},
		{"[1, 2]::INTEGER[2]", "INTEGER[2]", "[1,2]"},
		{"{'b': 1, 'a c': {'x': 'y'}}", `STRUCT("b" INTEGER, "a c" STRUCT("x" VARCHAR))`, `{"b":1,"a c":{"x":"y"}}`},
		{"{'a': NULL::INTEGER}", `STRUCT("a" INTEGER)`, `{"a":null}`},
		{"MAP {'k': 1, 'l': NULL}", "MAP(VARCHAR, INTEGER)", `[{"key":"k","value":1},{"key":"l","value":null}]`},
		{"union_value(num := 2)", `UNION("num" INTEGER)`, "2"},
		{"'x'::UNION(num INTEGER, str VARCHAR)", `UNION("num" INTEGER, "str" VARCHAR)`, `"x"`},
		{`'{"b": 12345678901234567890, "a": [1.10]}'::JSON`, "JSON", `{"b":12345678901234567890,"a":[1.10]}`},
		{"'null'::JSON", "JSON", "null"},
		{"sum(1)", "HUGEINT", "1"},
	} {
		a := p.query("SELECT " + c.sql + " AS v")
		if a.Fault != nil {
			t.Errorf("%s: %v", c.sql, a.Fault)
			continue
		}
		if got := a.Rows.Columns[0]; got.Type != c.kind || got.Name != "v" {
			t.Errorf("%s has the type %s, want %s", c.sql, got.Type, c.kind)
		}
		if got := string(a.Rows.Rows[0]); got != "["+c.want+"]" {
			t.Errorf("%s is %s, want %s", c.sql, got, c.want)
		}
	}
}

func TestValuesOfManyRows(t *testing.T) {
	p := loadPeer(t)
	// More rows than the engine gives at once, and some of each kind without a value.
	a := p.ask(ask.Request{Verb: ask.VerbQuery, Query: &ask.Query{MaxRows: 10_000, MaxBytes: 1_000_000, SQL: `
		SELECT i, CASE WHEN i % 3 > 0 THEN i::VARCHAR || repeat('x', i % 20) END, CASE WHEN i % 5 > 0 THEN [i, NULL] END,
			CASE WHEN i % 7 > 0 THEN {'a': i, 'b': CASE WHEN i % 2 > 0 THEN 'odd' END} END, CASE WHEN i % 11 > 0 THEN MAP {i: [i]} END, [i, i + 1]::BIGINT[2]
		FROM range(5000) r(i)`}})
	if a.Fault != nil || a.Rows.Count != 5000 || len(a.Rows.Rows) != 5000 || a.Rows.Cut != "" {
		t.Fatalf("%+v", a.Fault)
	}
	type odd struct {
		A int64   `json:"a"`
		B *string `json:"b"`
	}
	for i, row := range a.Rows.Rows {
		var (
			n     int
			text  *string
			list  []*int
			value *odd
			pairs []struct {
				Key   int   `json:"key"`
				Value []int `json:"value"`
			}
			array [2]int
		)
		if err := json.Unmarshal(row, &[]any{&n, &text, &list, &value, &pairs, &array}); err != nil {
			t.Fatal(err)
		}
		switch {
		case n != i, (text == nil) != (i%3 == 0), (list == nil) != (i%5 == 0), (value == nil) != (i%7 == 0), (pairs == nil) != (i%11 == 0),
			value != nil && (value.B == nil) != (i%2 == 0), pairs != nil && (pairs[0].Key != i || pairs[0].Value[0] != i), array != [2]int{i, i + 1},
			list != nil && (len(list) != 2 || *list[0] != i || list[1] != nil):
			t.Fatalf("row %d is %s", i, row)
		}
	}
}

func TestTypesWithoutAForm(t *testing.T) {
	p := loadPeer(t)
	for _, sql := range []string{"SELECT '123'::BIGNUM AS v", "SELECT [{'a': '1'::BIGNUM}] AS v", "SELECT 1::VARIANT AS v"} {
		if a := p.query(sql); a.Fault == nil || a.Fault.Kind != ask.Failed || !strings.Contains(a.Fault.Message, "VARCHAR") || !strings.Contains(a.Fault.Message, `"v"`) {
			t.Errorf("%s: %+v", sql, a.Fault)
		}
	}
	if got := p.rows("SELECT '123'::BIGNUM::VARCHAR"); got[0] != `["123"]` {
		t.Error(got)
	}
}

func TestColumnNames(t *testing.T) {
	a := loadPeer(t).query(`SELECT count(*), 1 AS a, 2 AS a, 3 AS "ü ""x""" `)
	var names []string
	for _, c := range a.Rows.Columns {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, "|"); got != `count_star()|a|a|ü "x"` {
		t.Error(got)
	}
}
