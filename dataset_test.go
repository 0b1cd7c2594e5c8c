package cove_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
)

// TestGrantOfNothing: a list of nothing shows nothing, also after it was kept as
// JSON. Without a list, everything is shown.
func TestGrantOfNothing(t *testing.T) {
	d := cove.Dataset{ID: "shop", Tables: []cove.Table{{Name: "orders"}, {Name: "items"}}}
	for _, c := range []struct {
		name  string
		grant cove.DataGrant
		shows []string
	}{
		{"no list", cove.DataGrant{}, []string{"orders", "items"}},
		{"no dataset", cove.DataGrant{Datasets: []string{}}, nil},
		{"another dataset", cove.DataGrant{Datasets: []string{"desk"}}, nil},
		{"no table", cove.DataGrant{Tables: []string{}}, nil},
		{"one table", cove.DataGrant{Datasets: []string{"shop"}, Tables: []string{"shop.items"}}, []string{"items"}},
		{"no column", cove.DataGrant{Columns: map[string][]string{"shop.orders": {}}}, []string{"items"}},
		{"no column, in another case", cove.DataGrant{Columns: map[string][]string{"SHOP.Orders": nil}}, []string{"items"}},
		{"some columns", cove.DataGrant{Columns: map[string][]string{"shop.orders": {"id"}}}, []string{"orders", "items"}},
	} {
		data, err := json.Marshal(c.grant)
		if err != nil {
			t.Fatal(err)
		}
		var kept cove.DataGrant
		if err := json.Unmarshal(data, &kept); err != nil {
			t.Fatal(err)
		}
		var shows []string
		if got := kept.Shows(d); got != nil {
			for _, table := range got.Tables {
				shows = append(shows, table.Name)
			}
		}
		if diff := cmp.Diff(c.shows, shows); diff != "" {
			t.Errorf("%s, kept as %s: %s", c.name, data, diff)
		}
	}
}

// TestGrantThatBoundsNothing: a key is not made with a bound that would be none.
func TestGrantThatBoundsNothing(t *testing.T) {
	for field, grants := range map[string][]cove.DataGrant{
		"": {
			{},
			{MaxRows: cove.MaxRunRows, Tables: []string{"shop.orders"}, Columns: map[string][]string{"shop.a.b": {"id"}, "shop.orders": {}}},
		},
		"limits.data.max_rows": {{MaxRows: -1}, {MaxRows: cove.MaxRunRows + 1}},
		"limits.data.tables":   {{Tables: []string{"orders"}}, {Tables: []string{"shop."}}, {Tables: []string{".orders"}}},
		"limits.data.columns": {
			{Columns: map[string][]string{"orders": {"id"}}},
			{Columns: map[string][]string{"shop.orders": {"id"}, "shop.Orders": {"secret"}}},
		},
	} {
		for _, g := range grants {
			err := cove.KeyRequest{Name: "k", Scopes: []cove.Scope{cove.ScopeExec}, Limits: cove.KeyLimit{Data: g}}.Validate()
			e, _ := errors.AsType[*cove.Error](err)
			if field == "" && err != nil || field != "" && (e == nil || e.Code != cove.Invalid || !strings.Contains(e.Error(), field)) {
				t.Errorf("%+v: %v, want an error about %q", g, err, field)
			}
		}
	}
}

// TestFrameNames: rows are saved under the name of a variable, and under none that an
// interpreter lives by.
func TestFrameNames(t *testing.T) {
	for name, good := range map[string]bool{"top": true, "_x": true, "x__": true, "__builtins__": false, "__x": false, "a b": false, "1x": false} {
		err := cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 1", Session: cove.NewID(), SaveAs: name}.WithDefaults().Validate()
		if (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
