package dataruns

import "github.com/cove-sandbox/cove"

// fileCases are about files as people have them.
func fileCases() []testCase {
	return []testCase{
		{"bom", func(r *rig) {
			r.wantRows(r.ask(r.platform(), sql(odd, "SELECT id, name FROM bom")), "id,name", `[1,"first"]`)
		}},
		{"quotes", func(r *rig) {
			r.wantRows(r.ask(r.platform(), sql(odd, "SELECT text FROM quotes WHERE id = 1")), "text", `["a, \"quoted\" word\nand a line"]`)
		}},
		{"mixed_types", func(r *rig) {
			r.wantRows(r.ask(r.platform(), sql(odd, "SELECT count(*) AS n, max(v) AS m FROM mixed")), "n,m", `[30002,"word"]`)
		}},
		{"parquet", func(r *rig) {
			r.wantRows(r.ask(r.platform(), sql(odd, "SELECT * FROM days")), "id,name,day", `[1,"é","2020-01-02"]`, `[2,null,null]`)
			r.wantRows(r.ask(r.platform(), python(odd, "days.assign(year=days.day.dt.year)[['id', 'name', 'year']].head(1)")), "id,name,year", `[1,"é",2020.0]`)
			r.wantRows(r.ask(r.platform(), python(odd, "int(dfs['days'].day.isna().sum())")), "result", `[1]`)
		}},
		{"no_identifier", fileNoIdentifier},
		{"ten_thousand_columns", fileWide},
		{"good_beside_bad", func(r *rig) {
			r.wantRows(r.ask(r.platform(), sql(bad, "SELECT a FROM good")), "a", `[1]`)
			r.wantRows(r.ask(r.platform(), python(bad, "len(good)")), "result", `[1]`)
			r.wantError(r.ask(r.platform(), python(bad, "len(latin1)")), cove.RunInvalidInput, "latin1")
			r.wantError(r.ask(r.platform(), python(bad, "len(empty)")), cove.RunInvalidInput, "empty.csv is empty")
		}},
		{"named_files", fileNamed},
		{"path_of_the_host", func(r *rig) {
			req := sql(shop, "SELECT * FROM x")
			req.Files = []cove.RunFile{{Name: "x", Path: "../../../../etc/passwd"}}
			r.wantError(r.ask(r.platform(), req), cove.RunInvalidInput)
		}},
	}
}

// fileWide has a column of the engine's own blocks for each of the file's: they are
// answered where there is room for them, and otherwise that is what is said.
func fileWide(r *rig) {
	req := sql(odd, "SELECT c0, c9999 FROM wide")
	run := r.ask(r.platform(), req)
	if run.Answer.Error != nil {
		r.wantError(run, cove.RunInvalidInput, "wide.csv", "memory")
		req.Flavor = "large"
		run = r.ask(r.platform(), req)
	}
	r.wantRows(run, "c0,c9999", `[0,9999]`)
}

func fileNoIdentifier(r *rig) {
	r.wantRows(r.ask(r.platform(), sql(odd, `SELECT sum(total) AS t FROM "2024 sales"`)), "t", `[300]`)
	r.wantRows(r.ask(r.platform(), python(odd, "int(dfs['2024 sales']['total'].sum())")), "result", `[300]`)
}

// fileNamed gives tables other names than those of their files.
func fileNamed(r *rig) {
	req := sql(twins, "SELECT (SELECT a FROM one) + (SELECT a FROM two) AS n")
	req.Files = []cove.RunFile{{Name: "one", Path: "orders.csv"}, {Name: "two", Path: "orders.json"}}
	r.wantRows(r.ask(r.platform(), req), "n", `[2]`)
}
