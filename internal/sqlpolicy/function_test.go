package sqlpolicy_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/duckdb/ask"
	"github.com/cove-sandbox/cove/internal/sqlpolicy"
)

const (
	listFile   = "functions.txt"
	engineFile = "testdata/engine.txt" // every function of the engine, with its kinds
)

// engineFunctions returns the kinds of each function: those of the real engine where
// there is one, and else those that it had once.
func engineFunctions(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	kept, err := os.ReadFile(engineFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(kept)) {
		name, kinds, _ := strings.Cut(strings.TrimSpace(line), " ")
		out[name] = strings.Fields(kinds)
	}
	h, err := helperOnce()
	if err != nil {
		t.Fatal(err)
	}
	if h == nil {
		return out
	}
	answer, err := h.ask(ask.Request{Verb: ask.VerbFunctions})
	if err != nil {
		t.Fatal(err)
	}
	now := map[string][]string{}
	for _, f := range answer.Functions {
		name := strings.ToLower(f.Name)
		if !slices.Contains(now[name], f.Kind) {
			now[name] = append(now[name], f.Kind)
			slices.Sort(now[name])
		}
	}
	if *update {
		var file strings.Builder
		for _, name := range slices.Sorted(maps.Keys(now)) {
			fmt.Fprintf(&file, "%s %s\n", name, strings.Join(now[name], " "))
		}
		if err := os.WriteFile(engineFile, []byte(file.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(out, now); diff != "" {
		t.Errorf("the engine has other functions now: decide about each, then run the test with -update\n%s", diff)
	}
	return now
}

// TestFunctionList: the list is what the engine has, less what is refused, and
// unnest, which the parser knows by itself.
func TestFunctionList(t *testing.T) {
	want := []string{"unnest"}
	for name, kinds := range engineFunctions(t) {
		called := slices.ContainsFunc(kinds, func(k string) bool { return k == "scalar" || k == "aggregate" || k == "macro" })
		if called && sqlpolicy.RefusedBecause(name) == "" {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if *update {
		if err := os.WriteFile(listFile, []byte(strings.Join(want, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(listFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, strings.Fields(string(got))); diff != "" {
		t.Error(diff)
	}
}

// TestDangerousFunctions are refused, whatever kind they have in the engine.
func TestDangerousFunctions(t *testing.T) {
	list, err := os.ReadFile(listFile)
	if err != nil {
		t.Fatal(err)
	}
	allowed := strings.Fields(string(list))
	for name := range strings.FieldsSeq(`read_csv read_csv_auto read_text read_blob read_json read_parquet read_duckdb parquet_scan parquet_metadata sniff_csv glob
		arrow_scan arrow_scan_dumb seq_scan query query_table json_execute_serialized_sql json_serialize_sql json_serialize_plan json_deserialize_sql
		getenv getvariable current_setting write_log nextval currval setseed sleep_ms pg_sleep duckdb_settings duckdb_secrets which_secret pragma_version
		sql_auto_complete finalize combine current_query add_parquet_key copy_database checkpoint enable_logging`) {
		if slices.Contains(allowed, name) || sqlpolicy.RefusedBecause(name) == "" {
			t.Errorf("%s may be called", name)
		}
	}
}
