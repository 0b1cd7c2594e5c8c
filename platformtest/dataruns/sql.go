package dataruns

import (
	"fmt"

	"github.com/cove-sandbox/cove"
)

// sqlCases are about statements that must pass, and those that must not.
func sqlCases() []testCase {
	cases := []testCase{
		{"allowed", sqlAllowed},
		{"cross_join", sqlCrossJoin},
		{"memory", sqlMemory},
		{"warm", sqlWarm},
	}
	for i, c := range refusedSQL() {
		cases = append(cases, testCase{fmt.Sprintf("refused_%02d", i), func(r *rig) {
			r.wantRefusal(r.ask(r.platform(), sql(shop, c.text)), cove.RunSQLPolicy, c.word)
		}})
	}
	return cases
}

type refused struct{ text, word string }

func refusedSQL() []refused {
	return []refused{
		{"SELECT * FROM read_csv('/etc/passwd')", "read_csv"},
		{`SELECT * FROM "read_csv"('/etc/passwd')`, ""},
		{"SELECT content FROM read_text('/etc/passwd')", "read_text"},
		{"SELECT * FROM '/etc/passwd'", ""},
		{"SELECT * FROM glob('/*')", "glob"},
		{"COPY orders TO '/tmp/x.csv'", "COPY"},
		{"ATTACH '/tmp/x.db' AS x", "ATTACH"},
		{"INSTALL httpfs", "INSTALL"},
		{"LOAD httpfs", "LOAD"},
		{"SET enable_external_access=true", "SET"},
		{"PRAGMA database_list", "PRAGMA"},
		{"CALL pragma_version()", "CALL"},
		{"EXPORT DATABASE '/tmp/x'", "EXPORT"},
		{"CREATE TABLE x AS SELECT 1", "CREATE"},
		{"INSERT INTO orders VALUES (9)", "INSERT"},
		{"DELETE FROM orders", "DELETE"},
		{"SELECT 1; SELECT 2", ""},
		{"SELECT 1; DROP TABLE orders", ""},
		{"SELECT 1 -- ; harmless\n; COPY orders TO '/tmp/x.csv'", ""},
		{"SELECT * FROM query('SELECT 42')", "query"},
		{"SELECT * FROM duckdb_settings()", "duckdb_settings"},
		{"SELECT * FROM information_schema.tables", ""},
		{"SELECT current_setting('home_directory')", "current_setting"},
		{"SELECT getenv('HOME')", "getenv"},
		{"SELECT * FROM vault.secrets", ""},
		{"WITH orders AS (SELECT * FROM vault.secrets) SELECT * FROM orders", ""},
	}
}

func sqlAllowed(r *rig) {
	for _, c := range []struct{ text, columns, row string }{
		{"SELECT 'drop table' AS s", "s", `["drop table"]`},
		{"SELECT 'COPY x TO y; ATTACH' AS s;", "s", `["COPY x TO y; ATTACH"]`},
		{"-- a comment\nSELECT /* DROP */ 1 AS a", "a", `[1]`},
		{"FROM orders SELECT count(*) AS n", "n", `[5]`},
		{"SELECT status, count(*) AS n FROM orders GROUP BY ALL ORDER BY ALL LIMIT 1", "status,n", `["lost",1]`},
		{"SELECT id FROM orders QUALIFY row_number() OVER (ORDER BY amount DESC NULLS LAST) = 1", "id", `[3]`},
		{"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT max(i) AS m FROM n", "m", `[5]`},
		{"SELECT list_transform([1, 2], lambda x: x + 1) AS l", "l", `[[2,3]]`},
		{"SELECT sum(n) FILTER (sku = 'pen') AS pens FROM items", "pens", `[9]`},
		{"SELECT count(*) AS n FROM (VALUES (1), (2)) v(a)", "n", `[2]`},
	} {
		run := r.ask(r.platform(), sql(shop, c.text))
		before := r.Failed()
		r.wantRows(run, c.columns, c.row)
		if !before && r.Failed() {
			r.Errorf("that was %s", c.text)
		}
	}
}

// sqlCrossJoin eats memory, and must be told so. What comes after it works.
func sqlCrossJoin(r *rig) {
	req := sql(shop, "SELECT a.i, b.i, list(c.i) FROM range(100000) a(i), range(100000) b(i), range(1000) c(i) GROUP BY ALL")
	req.Timeout = cove.MaxRunTimeout
	run := r.ask(r.platform(), req)
	r.wantError(run, cove.RunSQLFailed, "the query needs more than the")
	r.wantRows(r.ask(r.platform(), sql(shop, "SELECT count(*) AS n FROM orders")), "n", `[5]`)
}

// sqlMemory takes what the engine itself does not count.
func sqlMemory(r *rig) {
	req := sql(shop, "SELECT length(repeat('x', 3000000000)) AS n, length(repeat('y', 3000000000)) AS m")
	req.Timeout = cove.MaxRunTimeout
	run := r.ask(r.platform(), req)
	if run.Answer.Error == nil || run.Answer.Error.Type != cove.RunSQLFailed {
		r.Errorf("it is %+v", run.Answer)
	}
	r.wantRows(r.ask(r.platform(), sql(shop, "SELECT count(*) AS n FROM orders")), "n", `[5]`)
}

// sqlWarm wants the second question to find the tables loaded.
func sqlWarm(r *rig) {
	p := r.s.shared.As(analyst("warm"))
	first := r.ask(p, sql(shop, "SELECT count(*) AS n FROM orders"))
	if !first.Answer.Loaded {
		r.Error("the first question of a tenant finds tables that are loaded")
	}
	second := r.ask(p, sql(shop, "SELECT max(id) AS n FROM orders"))
	r.wantRows(second, "n", `[5]`)
	if second.Answer.Loaded || second.Timings.Load > first.Timings.Load {
		r.Errorf("the second question loads them again: %+v after %+v", second.Timings, first.Timings)
	}
}
