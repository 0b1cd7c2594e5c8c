package dataruns

import (
	"context"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// acceptanceCases are the list by which a provider is taken, line by line; what
// needs something broken is in faultCases, with a model in chatCases.
func acceptanceCases() []testCase {
	return []testCase{
		{"SQL", acceptSQL},
		{"Python", acceptPython},
		{"SameFields", acceptSameFields},
		{"TimeoutMapped", acceptTimeout},
		{"SQLPolicyMapped", acceptSQLPolicy},
		{"PythonPolicyMapped", acceptPythonPolicy},
		{"Cleanup", acceptCleanup},
		{"NoSilentSwitch", acceptNoSilentSwitch},
		{"ProviderInMetricsAndLogs", acceptToldOf},
	}
}

func acceptSQL(r *rig) {
	run := r.ask(r.platform(), sql(shop, "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders WHERE status = 'paid' GROUP BY 1 ORDER BY 1"))
	r.wantRows(run, "customer,n,total", `["ada",2,40.5]`, `["bob",1,0.25]`)
	run = r.ask(r.platform(), sql("", "SELECT o.customer, i.sku FROM shop.orders o JOIN shop.items i ON i.order_id = o.id ORDER BY 1, 2"))
	r.wantRows(run, "customer,sku", `["ada","ink"]`, `["ada","pen"]`, `["ada","pen"]`)
	if d := run.Decision; d == nil || !d.Allowed || len(d.Tables) != 2 || d.Tables[0] != "shop.items" && d.Tables[1] != "shop.items" {
		r.Errorf("the decision is %+v", d)
	}
}

func acceptPython(r *rig) {
	run := r.ask(r.platform(), python(shop, "import pandas as pd\nprint('looked')\nresult_df = orders.groupby('customer', as_index=False)['id'].count()"))
	r.wantRows(run, "customer,id", `["ada",2]`, `["bob",2]`, `["eve",1]`)
	if run.Answer.Stdout != "looked\n" {
		r.Errorf("it printed %q", run.Answer.Stdout)
	}
}

// acceptSameFields wants what a caller reads to be there for every kind of end.
func acceptSameFields(r *rig) {
	for _, req := range []cove.RunRequest{
		sql(shop, "SELECT 1 AS one"),
		python(shop, "result = 1"),
		sql(shop, "SELECT nothing"),
		python(shop, "1/0"),
		sql(shop, "DROP TABLE orders"),
	} {
		run := r.ask(r.platform(), req)
		if !run.ID.Valid() || run.Tenant != "acme" || run.Owner == "" || run.Request.SQL != req.SQL || run.Request.Python != req.Python {
			r.Errorf("the record is %+v", run)
		}
		if run.Request.Timeout != cove.DefaultRunTimeout || run.Request.MaxRows != cove.DefaultRunRows || run.Request.MaxOutput != cove.DefaultRunOutput {
			r.Errorf("the bounds are %+v", run.Request)
		}
		again, err := r.platform().Runs().Get(r.ctx, run.ID)
		if err != nil || again.State != run.State || again.Answer == nil || again.Answer.RowCount != run.Answer.RowCount {
			r.Errorf("what is kept is %+v, %v", again, err)
		}
	}
}

// Questions that never end by themselves.
const (
	endlessSQL    = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
	endlessPython = "while True:\n    pass"
)

func acceptTimeout(r *rig) {
	for _, req := range []cove.RunRequest{sql(shop, endlessSQL), python(shop, endlessPython)} {
		req.Timeout = time.Second
		run := r.ask(r.platform(), req)
		r.wantError(run, cove.RunTimeout, "1s")
		// What comes after it works.
		req.Timeout = 0
		if req.Type == cove.QuerySQL {
			req.SQL = "SELECT count(*) AS n FROM orders"
		} else {
			req.Python = "result_rows = [[len(orders)]]\nresult_columns = ['n']"
		}
		r.wantRows(r.ask(r.platform(), req), "n", `[5]`)
	}
}

func acceptSQLPolicy(r *rig) {
	r.wantRefusal(r.ask(r.platform(), sql(shop, "SELECT *\nFROM read_csv('/etc/passwd')")), cove.RunSQLPolicy, "read_csv")
}

func acceptPythonPolicy(r *rig) {
	r.wantRefusal(r.ask(r.platform(), python(shop, "x = 1\nimport os\nos.listdir('/')")), cove.RunPythonPolicy, "os")
}

// acceptCleanup wants that a run which is deleted ends, and is forgotten.
func acceptCleanup(r *rig) {
	runs := r.platform().Runs()
	for _, req := range []cove.RunRequest{sql(shop, endlessSQL), python(shop, endlessPython), sql(shop, "SELECT 1")} {
		req.Timeout = cove.MaxRunTimeout
		run, err := runs.Submit(r.ctx, req)
		if err != nil {
			r.Fatal(err)
		}
		if req.SQL == "SELECT 1" {
			if _, err := runs.Wait(r.ctx, run.ID); err != nil {
				r.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(r.ctx, cove.MaxRunTimeout-time.Second)
		if err := runs.Delete(ctx, run.ID); err != nil {
			r.Errorf("delete: %v", err)
		}
		cancel()
		if _, err := runs.Get(r.ctx, run.ID); cove.CodeOf(err) != cove.NotFound {
			r.Errorf("a deleted run is %v", err)
		}
	}
	r.wantRows(r.ask(r.platform(), sql(shop, "SELECT count(*) AS n FROM orders")), "n", `[5]`)
}

// acceptNoSilentSwitch wants that a provider which is not there is said, and not
// another one taken.
func acceptNoSilentSwitch(r *rig) {
	req := sql(shop, "SELECT 1")
	req.Provider = "no-such-provider"
	run, err := r.platform().Runs().Submit(r.ctx, req)
	if err == nil {
		if run, err = r.platform().Runs().Wait(r.ctx, run.ID); err != nil {
			r.Fatal(err)
		}
		r.wantError(run, cove.RunUnavailable, "no-such-provider")
		return
	}
	if code := cove.CodeOf(err); code != cove.Invalid && code != cove.Unsupported || !strings.Contains(cove.MessageOf(err), "no-such-provider") {
		r.Errorf("it is %v", err)
	}
	run = r.ask(r.platform(), sql(shop, "SELECT 1 AS one"))
	if run.Answer.Instead != "" {
		r.Errorf("it was served instead of %q", run.Answer.Instead)
	}
}

func acceptToldOf(r *rig) {
	r.ask(r.platform(), sql(shop, "SELECT 1 AS one"))
	r.ask(r.platform(), sql(shop, "SELECT nothing"))
	metrics, log := r.s.shared.Told()
	if metrics == "" {
		r.Skip("nobody keeps the metrics of this platform")
	}
	name := r.s.shared.Provider()
	for _, kind := range []string{`error_type="none"`, `error_type="` + cove.RunSQLFailed + `"`} {
		found := false
		for line := range strings.Lines(metrics) {
			found = found || strings.HasPrefix(line, "cove_runs_total{") && strings.Contains(line, `provider="`+name+`"`) &&
				strings.Contains(line, kind) && strings.Contains(line, `query_type="sql"`)
		}
		if !found {
			r.Errorf("no cove_runs_total of %s has %s", name, kind)
		}
	}
	if !strings.Contains(metrics, `cove_run_seconds_count{`) {
		r.Error("there is no cove_run_seconds")
	}
	found := false
	for line := range strings.Lines(log) {
		found = found || strings.Contains(line, "run_id") && strings.Contains(line, name)
	}
	if !found {
		r.Errorf("no line of the log has a run and the provider:\n%.2000s", log)
	}
}
