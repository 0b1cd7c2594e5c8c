package dataruns

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// errorCases have one case for every type of error.
func errorCases() []testCase {
	cases := []testCase{
		{cove.RunValidation, errorValidation},
		{"every_type", func(r *rig) {
			covered := map[string]bool{cove.RunValidation: true, cove.RunInternalError: true, cove.RunUnavailable: true} // those two in faultCases
			for _, e := range errorTable() {
				covered[e.kind] = true
			}
			for _, kind := range cove.RunErrorTypes() {
				if !covered[kind] {
					r.Errorf("no case has an error of type %s", kind)
				}
			}
		}},
	}
	for _, e := range errorTable() {
		cases = append(cases, testCase{e.kind + "/" + e.name, func(r *rig) {
			r.wantError(r.ask(r.platform(), e.req), e.kind, e.words...)
		}})
	}
	return cases
}

type errorRow struct {
	kind, name string
	req        cove.RunRequest
	words      []string // in the message
}

func errorTable() []errorRow {
	slow := sql(shop, endlessSQL)
	slow.Timeout = time.Second
	noFile := sql(shop, "SELECT 1")
	noFile.Files = []cove.RunFile{{Name: "orders", Path: "nothing.csv"}}
	outside := sql(shop, "SELECT * FROM x")
	outside.Files = []cove.RunFile{{Name: "x", Path: "../vault/secrets.csv"}}
	absolute := sql(shop, "SELECT * FROM x")
	absolute.Files = []cove.RunFile{{Name: "x", Path: "/etc/passwd"}}
	return []errorRow{
		{cove.RunInvalidInput, "unknown_dataset", sql("nowhere", "SELECT 1"), []string{"there is no dataset", "nowhere"}},
		{cove.RunInvalidInput, "python_unknown_dataset", python("nowhere", "1"), []string{"there is no dataset", "nowhere"}},
		{cove.RunInvalidInput, "missing_file", noFile, []string{"nothing.csv"}},
		{cove.RunInvalidInput, "file_outside", outside, []string{"vault/secrets.csv"}},
		{cove.RunInvalidInput, "file_of_the_host", absolute, []string{"/etc/passwd"}},
		{cove.RunInvalidInput, "wrong_encoding", sql(bad, "SELECT * FROM latin1"), []string{"latin1"}},
		{cove.RunInvalidInput, "empty_file", sql(bad, "SELECT * FROM empty"), []string{"empty"}},
		{cove.RunInvalidInput, "two_stems", sql(twins, "SELECT * FROM orders"), []string{"orders.csv", "orders.json"}},
		{cove.RunSQLFailed, "syntax", sql(shop, "SELECT FROM WHERE"), nil},
		{cove.RunSQLFailed, "no_column", sql(shop, "SELECT nothing FROM orders"), []string{"nothing"}},
		{cove.RunSQLFailed, "cast", sql(shop, "SELECT CAST(customer AS INTEGER) FROM orders"), []string{"ada"}},
		{cove.RunSQLPolicy, "drop", sql(shop, "DROP TABLE orders"), nil},
		{cove.RunPythonFailed, "syntax", python(shop, "def ("), []string{"syntax"}},
		{cove.RunPythonFailed, "raise", python(shop, "raise ValueError('too odd')"), []string{"ValueError", "too odd"}},
		{cove.RunPythonFailed, "no_name", python(shop, "nothing"), []string{"NameError"}},
		{cove.RunPythonPolicy, "open", python(shop, "open('/etc/passwd')"), []string{"open"}},
		{cove.RunTimeout, "sql", slow, []string{"1s"}},
	}
}

// errorValidation wants a request that is wrong by itself to be refused before
// anything is done, with the field.
func errorValidation(r *rig) {
	for field, req := range map[string]cove.RunRequest{
		"query_type":       {Type: "shell", SQL: "SELECT 1"},
		"sql":              {Type: cove.QuerySQL},
		"python_code":      {Type: cove.QueryPython, SQL: "SELECT 1"},
		"timeout_seconds":  {Type: cove.QuerySQL, SQL: "SELECT 1", Timeout: time.Hour},
		"max_rows":         {Type: cove.QuerySQL, SQL: "SELECT 1", MaxRows: 5000},
		"max_output_bytes": {Type: cove.QuerySQL, SQL: "SELECT 1", MaxOutput: 5},
		"save_as":          {Type: cove.QuerySQL, SQL: "SELECT 1", SaveAs: "x"},
	} {
		_, err := r.platform().Runs().Submit(r.ctx, req)
		e, ok := asError(err)
		if !ok || e.Code != cove.Invalid || e.Details["field"] != field {
			r.Errorf("%s: %v", field, err)
		}
	}
}
