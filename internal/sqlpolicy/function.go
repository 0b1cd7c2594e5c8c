package sqlpolicy

import (
	_ "embed"
	"fmt"
	"path"
	"strings"
)

// functionList has one name on each line: all functions that a statement may call
// outside of FROM. It is what the engine has, less what refusedFunctions names: a
// test compares them, and a newer engine changes the list by an edit that somebody
// reads.
//
//go:embed functions.txt
var functionList string

var functions = set(functionList)

// tableFunctions are the functions that may stand in FROM, and the columns that
// they give. They make rows out of their arguments.
var tableFunctions = map[string][]string{
	"generate_series": {"generate_series"},
	"json_each":       {"key", "value", "type", "atom", "id", "parent", "fullkey", "path", "json", "root"},
	"json_tree":       {"key", "value", "type", "atom", "id", "parent", "fullkey", "path", "json", "root"},
	"range":           {"range"},
	"repeat":          {"repeat"},
	"unnest":          {"unnest"},
}

// Why functions are refused.
const (
	becauseFiles   = "reads files"
	becauseText    = "runs or takes apart statements that are written in a text"
	becauseEngine  = "tells about the engine, not about the data"
	becauseState   = "changes or reads what outlives the statement"
	becauseWaits   = "only waits"
	becauseInside  = "is for the engine's own use and trusts its arguments"
	becauseInvents = "is for tests of the engine"
)

// refusedFunctions are patterns of names, with the reason. The first that fits
// counts; those without a reason fit what is not refused.
var refusedFunctions = []struct{ because, patterns string }{
	{"", `pg_typeof parse_dirname parse_dirpath parse_filename parse_formatted_bytes parse_path
		current_catalog current_database current_date current_local* current_role current_schema current_user`},
	{becauseFiles, `read_* parquet_* sniff_csv glob *_scan arrow_scan* import_database copy_database getenv add_parquet_key which_secret`},
	{becauseText, `query query_table json_execute_serialized_sql json_serialize_* json_deserialize_* sql_auto_complete summary histogram_values`},
	{becauseEngine, `duckdb_* pragma_* pg_* current_* has_*_privilege inet_* *_description format_type format_pg_type map_to_pg_oid get_block_size
		in_search_path parse_duckdb_log_message show* *_info stats vector_type txid_current`},
	{becauseState, `nextval currval setseed getvariable write_log *_logging *checkpoint* enable_* disable_* truncate_*`},
	{becauseWaits, `sleep_ms`},
	{becauseInside, `__internal_* combine finalize create_sort_key remap_struct variant_bytes_to_variant variant_normalize variant_to_parquet_variant
		make_type get_type replace_type cast_to_type timetz_byte_comparable constant_or_null`},
	{becauseInvents, `test_*`},
}

// refusedBecause returns why a function of this name is refused, or nothing.
func refusedBecause(name string) string {
	for _, r := range refusedFunctions {
		for pattern := range strings.FieldsSeq(r.patterns) {
			if ok, err := path.Match(pattern, name); ok || err != nil {
				return r.because
			}
		}
	}
	return ""
}

func noFunction(name string) string {
	if because := refusedBecause(name); because != "" {
		return fmt.Sprintf("%s %s", cut(name), because)
	}
	return fmt.Sprintf("%s is not on the list of functions that a statement may call", cut(name))
}

func noTableFunction(name string) string {
	if because := refusedBecause(name); because != "" {
		return fmt.Sprintf("%s %s", cut(name), because)
	}
	return fmt.Sprintf("%s is not on the list of functions that may stand in FROM", cut(name))
}
