//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// What the engine itself must not do for a query, whatever was decided about the
// query before: no file, no setting, no extension, nothing that stays.
func TestTheDoorIsClosed(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret.csv")
	if err := os.WriteFile(secret, []byte("word\nopen sesame\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := loadPeer(t, table(t, "orders.csv", "id,status\n1,paid\n"))
	parquet := filepath.Join(dir, "x.parquet")
	for _, sql := range []string{
		"FROM read_csv('SECRET')",
		"FROM 'SECRET'",
		`FROM "SECRET"`,
		"SELECT content FROM read_text('SECRET')",
		"SELECT content FROM read_blob('SECRET')",
		"FROM read_json('SECRET')",
		"FROM read_parquet('SECRET')",
		"FROM parquet_metadata('SECRET')",
		"FROM sniff_csv('SECRET')",
		"FROM glob('DIR/*')",
		"FROM read_csv('/proc/self/fd/0')",
		"FROM read_text('/proc/self/environ')",
		"FROM sqlite_scan('SECRET', 'x')",
		"FROM query('FROM read_csv(''SECRET'')')",
		"FROM query('COPY orders TO ''PARQUET''')",
		"FROM query_table('SECRET')",
		"FROM json_execute_serialized_sql(json_serialize_sql('FROM read_csv(''SECRET'')'))",
		"FROM arrow_scan(1::POINTER, 2::POINTER, 3::POINTER)",
		"COPY orders TO 'PARQUET'",
		"COPY (SELECT 1) TO '/dev/stdout'",
		"COPY orders FROM 'SECRET'",
		"EXPORT DATABASE 'DIR/out'",
		"IMPORT DATABASE 'DIR'",
		"ATTACH 'DIR/x.db'",
		"ATTACH ':memory:' AS other",
		"INSTALL httpfs",
		"LOAD httpfs",
		"LOAD 'SECRET'",
		"SET enable_external_access = true",
		"SET GLOBAL lock_configuration = false",
		"RESET lock_configuration",
		"SET threads = 64",
		"SET memory_limit = '100GB'",
		"SET temp_directory = 'DIR'",
		"SET VARIABLE x = 1",
		"USE system",
		"PRAGMA enable_profiling",
		"PRAGMA memory_limit = '1TB'",
		"CREATE TABLE stays (a INT)",
		"CREATE TEMP TABLE stays (a INT)",
		"CREATE VIEW stays AS SELECT 1",
		"CREATE MACRO stays(x) AS x + 1",
		"CREATE SECRET stays (TYPE s3)",
		"INSERT INTO orders VALUES (2, 'x')",
		"INSERT INTO orders VALUES (2, 'x') RETURNING *",
		"UPDATE orders SET id = 2",
		"DELETE FROM orders",
		"DROP TABLE orders",
		"ALTER TABLE orders ADD COLUMN x INT",
		"MERGE INTO orders USING orders AS o ON true WHEN MATCHED THEN DELETE",
		"BEGIN",
		"CHECKPOINT",
		"CALL pragma_version()",
		"EXPLAIN ANALYZE SELECT 1",
		"PREPARE p AS SELECT 1",
		"EXECUTE p",
		"SELECT 1; SELECT 2",
		"SELECT 1; DROP TABLE orders",
		"SELECT 1; -- a comment\n COPY orders TO 'PARQUET'",
		"/* SELECT */ DROP TABLE orders",
		"PIVOT orders ON status",
		"SELECT * FROM (PIVOT orders ON status)",
		"SELECT getenv('HOME')",
		"SELECT $1",
		"",
		"-- nothing",
	} {
		sql = strings.NewReplacer("SECRET", secret, "DIR", dir, "PARQUET", parquet).Replace(sql)
		a := p.query(sql)
		if a.Fault == nil {
			t.Errorf("%s: it ran, %s", sql, a.Rows.Rows)
			continue
		}
		if a.Fault.Message == "" || strings.Contains(a.Fault.Message, "sesame") || a.Fault.Kind == ask.Internal || strings.ContainsAny(a.Fault.Message, "{}\n") {
			t.Errorf("%s: %+v", sql, a.Fault)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("there are %v, %v", left, err)
	}
	if got := p.rows("FROM orders"); len(got) != 1 || got[0] != `[1,"paid"]` {
		t.Errorf("the table is %s", got)
	}
	if got := p.rows("SELECT table_name FROM information_schema.tables"); len(got) != 1 {
		t.Errorf("there are tables %s", got)
	}
	if got := p.rows("SELECT value FROM duckdb_settings() WHERE name IN ('enable_external_access', 'lock_configuration', 'threads', 'temp_directory', 'autoload_known_extensions') ORDER BY name"); strings.Join(got, "") != `["false"]["false"]["true"][""]["1"]` {
		t.Errorf("the settings are %s", got)
	}
}

func TestKindsOfFaults(t *testing.T) {
	p := loadPeer(t, table(t, "orders.csv", "id,status\n1,paid\n"))
	deep := func(n int, open, end string) string { return strings.Repeat(open, n) + "1" + strings.Repeat(end, n) }
	for _, c := range []struct {
		sql, want    string
		kind         ask.Kind
		line, column int
	}{
		{"SELEC 1", `syntax error at or near "SELEC"`, ask.Syntax, 1, 1},
		{"SELECT 'ü',\n  FROM WHERE", `syntax error at or near "WHERE"`, ask.Syntax, 2, 8},
		{"SELECT 'open", "unterminated", ask.Syntax, 1, 8},
		{"SELECT " + deep(500_000, "(", ")"), "nested too deeply", ask.Syntax, 0, 0},
		{"SELECT " + deep(300, "abs(", ")"), "nested too deeply", ask.Syntax, 0, 0},
		{"SELECT " + deep(100_000, "1+", ""), "nested too deeply", ask.Syntax, 0, 0},
		{"SELECT " + deep(90_000, "(SELECT ", ")"), "nested too deeply", ask.Syntax, 0, 0},
		{"SELECT 'ü', nope FROM orders", `"nope" not found in FROM clause; there is id`, ask.Failed, 1, 14},
		{"SELECT *\nFROM nope", "nope does not exist", ask.Failed, 2, 6},
		{"SELECT * FROM ordrs", "there is orders", ask.Failed, 1, 15},
		{"SELECT nofunction(1)", "nofunction does not exist", ask.Failed, 1, 8},
		{"SELECT 'x'::INT", "Could not convert string 'x' to INT32", ask.Failed, 1, 11},
		{"SELECT error('boom')", "boom", ask.Failed, 0, 0},
		{"SELECT 1; SELECT 2", "one statement", ask.NotOne, 0, 0},
		{"", "one statement", ask.NotOne, 0, 0},
		{"DROP TABLE orders", "SELECT", ask.NotSelect, 0, 0},
		{"SELECT list(i) FROM range(1000000000) r(i)", "memory", ask.Memory, 0, 0},
	} {
		a := p.query(c.sql)
		if a.Fault == nil {
			t.Errorf("%.60s: no fault", c.sql)
			continue
		}
		f := a.Fault
		if f.Kind != c.kind || !strings.Contains(f.Message, c.want) || c.line != 0 && (f.Line != c.line || f.Column != c.column) {
			t.Errorf("%.60s: %+v", c.sql, f)
		}
	}
	if got := p.rows("SELECT 'drop table' -- it is only words\n;"); got[0] != `["drop table"]` {
		t.Error(got)
	}
}
