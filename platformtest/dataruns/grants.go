package dataruns

import "github.com/cove-sandbox/cove"

// grantCases are about what a key may ask, and about other tenants.
func grantCases() []testCase {
	return []testCase{
		{"datasets", grantDatasets},
		{"tables", grantTables},
		{"columns", grantColumns},
		{"rows", grantRows},
		{"sql_only", grantSQLOnly},
		{"tenants", grantTenants},
		{"scope", grantScope},
	}
}

// bound is a caller with a grant.
func (r *rig) bound(g cove.DataGrant) cove.Platform {
	p := analyst("acme")
	p.Name, p.Limits.Data = "bound-"+r.Name(), g
	return r.s.shared.As(p)
}

// grantDatasets wants what a key may not see to look like what is not there.
func grantDatasets(r *rig) {
	p := r.bound(cove.DataGrant{Datasets: []string{shop}})
	r.wantRows(r.ask(p, sql(shop, "SELECT count(*) AS n FROM orders")), "n", `[5]`)
	hidden, none := r.ask(p, sql(vault, "SELECT * FROM secrets")), r.ask(p, sql("nought", "SELECT * FROM secrets"))
	r.wantError(hidden, cove.RunInvalidInput, "there is no dataset")
	r.wantError(none, cove.RunInvalidInput, "there is no dataset")
	r.wantError(r.ask(p, python(vault, "secrets")), cove.RunInvalidInput, "there is no dataset")
	r.wantError(r.ask(p, sql(shop, "SELECT * FROM vault.secrets")), cove.RunSQLPolicy)
	var ids []string
	for d, err := range p.Datasets().List(r.ctx, cove.DatasetFilter{}) {
		if err != nil {
			r.Fatal(err)
		}
		ids = append(ids, d.ID)
	}
	if len(ids) != 1 || ids[0] != shop {
		r.Errorf("it lists %q", ids)
	}
	if _, err := p.Datasets().Schema(r.ctx, vault); cove.CodeOf(err) != cove.NotFound {
		r.Errorf("the schema of another dataset is %v", err)
	}
}

func grantTables(r *rig) {
	p := r.bound(cove.DataGrant{Tables: []string{"shop.items"}})
	r.wantRows(r.ask(p, sql(shop, "SELECT count(*) AS n FROM items")), "n", `[3]`)
	r.wantRefusal(r.ask(p, sql(shop, "SELECT * FROM orders")), cove.RunSQLPolicy, "orders")
	r.wantError(r.ask(p, python(shop, "len(dfs['orders'])")), cove.RunPythonFailed)
}

func grantColumns(r *rig) {
	p := r.bound(cove.DataGrant{Columns: map[string][]string{"shop.orders": {"id", "status"}}})
	r.wantRows(r.ask(p, sql(shop, "SELECT * FROM orders WHERE id = 1")), "id,status", `[1,"paid"]`)
	r.wantRows(r.ask(p, sql(shop, "SELECT COLUMNS('.*') FROM orders WHERE id = 1")), "id,status", `[1,"paid"]`)
	for _, text := range []string{"SELECT customer FROM orders", "SELECT o.customer FROM orders o", "SELECT id FROM orders WHERE customer = 'ada'"} {
		if run := r.ask(p, sql(shop, text)); run.Answer.Error == nil || run.Answer.Error.Type != cove.RunSQLPolicy && run.Answer.Error.Type != cove.RunSQLFailed {
			r.Errorf("%s: %+v", text, run.Answer)
		}
	}
	r.wantRefusal(r.ask(p, sql(shop, "SELECT id,\n  customer FROM orders")), cove.RunSQLPolicy, "customer")
	// Python sees no more of it than SQL does, if it may at all.
	if run := r.ask(p, python(shop, "','.join(orders.columns)")); run.Answer.Error == nil {
		r.wantRows(run, "result", `["id,status"]`)
	}
}

func grantRows(r *rig) {
	run := r.ask(r.bound(cove.DataGrant{MaxRows: 2}), sql(shop, "SELECT id FROM orders ORDER BY id"))
	r.wantRows(run, "id", `[1]`, `[2]`)
	if !run.Answer.Truncated {
		r.Error("nothing says that rows were cut")
	}
}

func grantSQLOnly(r *rig) {
	p := r.bound(cove.DataGrant{SQLOnly: true})
	r.wantRows(r.ask(p, sql(shop, "SELECT 1 AS a")), "a", `[1]`)
	r.wantError(r.ask(p, python(shop, "1")), cove.RunPythonPolicy)
}

// grantTenants wants a tenant to see nothing of another's runs.
func grantTenants(r *rig) {
	mine, other := r.platform(), r.s.shared.As(analyst("rival"))
	run := r.ask(mine, sql(shop, "SELECT 1 AS a"))
	if _, err := other.Runs().Get(r.ctx, run.ID); cove.CodeOf(err) != cove.NotFound {
		r.Errorf("another tenant gets %v", err)
	}
	if _, err := other.Runs().Wait(r.ctx, run.ID); cove.CodeOf(err) != cove.NotFound {
		r.Errorf("another tenant waits and gets %v", err)
	}
	if err := other.Runs().Delete(r.ctx, run.ID); cove.CodeOf(err) != cove.NotFound {
		r.Errorf("another tenant deletes it: %v", err)
	}
	for seen, err := range other.Runs().List(r.ctx, cove.RunFilter{Tenant: "acme"}) {
		if err != nil {
			r.Fatal(err)
		}
		if seen.Tenant != "rival" {
			r.Errorf("another tenant lists %+v", seen)
		}
	}
	if first := r.ask(other, sql(shop, "SELECT 1 AS a")); !first.Answer.Loaded && first.Answer.Error == nil && first.Timings.Place == 0 {
		r.Errorf("the first question of a tenant finds a place: %+v", first.Timings)
	}
}

func grantScope(r *rig) {
	p := r.s.shared.As(cove.Principal{Name: "files", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeFileRead}})
	if _, err := p.Runs().Submit(r.ctx, sql(shop, "SELECT 1")); cove.CodeOf(err) != cove.Denied {
		r.Errorf("a key without the scope: %v", err)
	}
}
