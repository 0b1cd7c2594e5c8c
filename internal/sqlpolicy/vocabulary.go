package sqlpolicy

// part says what a field of a node may hold.
type part uint8

const (
	plain       part = iota // text, numbers, booleans and lists of them
	word                    // text that must be one of a list: see words
	nothing                 // null, false, "" or an empty list
	expr                    // an expression, or null
	exprs                   // a list of expressions
	exprLists               // a list of lists of them
	node                    // a query, or null
	statement               // a query with its parameters
	tableRef                // what stands in FROM
	modifiers               // a list of ORDER BY, LIMIT and DISTINCT
	modifier                // one of them, or null
	orders                  // a list of directions
	order                   // what to order by, and the direction
	ctes                    // the map of WITH
	sample                  // TABLESAMPLE, or null
	constants               // a list of values
	constant                // a value, with its type
	dataTypes               // a list of types
	dataType                // a type
	typeInfo                // what a type has besides its name, or null
	fieldTypes              // the fields of a struct
	fieldType               // the name and type of one
	cases                   // a list of WHEN and THEN
	oneCase                 // one of them
	replaces                // the list of REPLACE
	replace                 // the name of a column, and an expression
	renames                 // the list of RENAME
	rename                  // a column, and its new name
	columnNames             // the list of EXCLUDE
	columnName              // the name of a column with what qualifies it
	pivots                  // the list of FOR in PIVOT
	pivot                   // one of them
	pivotValues             // the list of IN in PIVOT
	pivotValue              // one of them
)

// field is a field of a node and what it may hold.
type field struct {
	name  string
	holds part
}

// shape is a kind of node: its fields, in the order in which they are visited.
type shape []field

// Fields that many nodes have.
var (
	ofExpression = shape{{"class", plain}, {"type", plain}, {"alias", plain}, {"query_location", plain}}
	ofTable      = shape{{"type", plain}, {"alias", plain}, {"query_location", plain}, {"sample", sample}}
	ofQuery      = shape{{"type", plain}, {"cte_map", ctes}}
	ofTypeInfo   = shape{{"type", plain}, {"alias", plain}, {"extension_info", nothing}}
)

func with(shared shape, own ...field) shape {
	return append(append(shape{}, shared...), own...)
}

// expressions are the classes of expressions.
var expressions = map[string]shape{
	"BETWEEN":     with(ofExpression, field{"input", expr}, field{"lower", expr}, field{"upper", expr}),
	"CASE":        with(ofExpression, field{"case_checks", cases}, field{"else_expr", expr}),
	"CAST":        with(ofExpression, field{"child", expr}, field{"cast_type", dataType}, field{"try_cast", plain}),
	"COLLATE":     with(ofExpression, field{"child", expr}, field{"collation", plain}),
	"COLUMN_REF":  with(ofExpression, field{"column_names", plain}),
	"COMPARISON":  with(ofExpression, field{"left", expr}, field{"right", expr}),
	"CONJUNCTION": with(ofExpression, field{"children", exprs}),
	"CONSTANT":    with(ofExpression, field{"value", constant}),
	"FUNCTION": with(
		ofExpression, field{"function_name", plain}, field{"schema", plain}, field{"catalog", plain}, field{"children", exprs}, field{"filter", expr},
		field{"order_bys", modifier}, field{"distinct", plain}, field{"is_operator", plain}, field{"export_state", nothing},
	),
	"LAMBDA":               with(ofExpression, field{"lhs", expr}, field{"expr", expr}),
	"OPERATOR":             with(ofExpression, field{"children", exprs}),
	"POSITIONAL_REFERENCE": with(ofExpression, field{"index", plain}),
	"STAR": with(
		ofExpression, field{"relation_name", plain}, field{"exclude_list", plain}, field{"qualified_exclude_list", columnNames},
		field{"replace_list", replaces}, field{"rename_list", renames}, field{"columns", plain}, field{"expr", expr},
	),
	"SUBQUERY": with(ofExpression, field{"subquery_type", word}, field{"child", expr}, field{"comparison_type", plain}, field{"subquery", statement}),
	"WINDOW": with(
		ofExpression, field{"function_name", plain}, field{"schema", plain}, field{"catalog", plain}, field{"children", exprs},
		field{"partitions", exprs}, field{"orders", orders}, field{"start", word}, field{"end", word},
		field{"start_expr", expr}, field{"end_expr", expr}, field{"offset_expr", expr}, field{"default_expr", expr},
		field{"ignore_nulls", plain}, field{"filter_expr", expr}, field{"exclude_clause", word}, field{"distinct", plain}, field{"arg_orders", orders},
	),
}

// tables are the kinds of what stands in FROM.
var tables = map[string]shape{
	"BASE_TABLE": with(
		ofTable, field{"catalog_name", plain}, field{"schema_name", plain}, field{"table_name", plain}, field{"column_name_alias", plain}, field{"at_clause", nothing},
	),
	"EMPTY":           ofTable,
	"EXPRESSION_LIST": with(ofTable, field{"expected_names", plain}, field{"expected_types", dataTypes}, field{"values", exprLists}),
	"JOIN": with(
		ofTable, field{"left", tableRef}, field{"right", tableRef}, field{"condition", expr}, field{"join_type", word}, field{"ref_type", word},
		field{"using_columns", plain}, field{"delim_flipped", nothing}, field{"duplicate_eliminated_columns", nothing},
	),
	"PIVOT": with(
		ofTable, field{"source", tableRef}, field{"aggregates", exprs}, field{"unpivot_names", plain}, field{"pivots", pivots}, field{"groups", plain},
		field{"column_name_alias", plain}, field{"include_nulls", plain},
	),
	"SHOW_REF": with(
		ofTable, field{"catalog_name", nothing}, field{"schema_name", nothing}, field{"table_name", nothing}, field{"show_type", word}, field{"query", node},
	),
	"SUBQUERY":       with(ofTable, field{"subquery", statement}, field{"column_name_alias", plain}),
	"TABLE_FUNCTION": with(ofTable, field{"function", expr}, field{"column_name_alias", plain}, field{"with_ordinality", word}),
}

// queries are the kinds of queries. What a query brings into scope comes before
// what is looked up there.
var queries = map[string]shape{
	"SELECT_NODE": with(
		ofQuery, field{"from_table", tableRef}, field{"select_list", exprs}, field{"where_clause", expr}, field{"group_expressions", exprs},
		field{"group_sets", plain}, field{"aggregate_handling", word}, field{"having", expr}, field{"sample", sample}, field{"qualify", expr}, field{"modifiers", modifiers},
	),
	"SET_OPERATION_NODE": with(ofQuery, field{"setop_type", word}, field{"setop_all", plain}, field{"left", node}, field{"right", node}, field{"modifiers", modifiers}),
	"RECURSIVE_CTE_NODE": with(
		ofQuery, field{"cte_name", plain}, field{"union_all", plain}, field{"aliases", plain}, field{"left", node}, field{"right", node},
		field{"key_targets", exprs}, field{"modifiers", modifiers},
	),
}

// modifierKinds are what follows a query.
var modifierKinds = map[string]shape{
	"DISTINCT_MODIFIER":      {{"type", plain}, {"distinct_on_targets", exprs}},
	"LIMIT_MODIFIER":         {{"type", plain}, {"limit", expr}, {"offset", expr}},
	"LIMIT_PERCENT_MODIFIER": {{"type", plain}, {"limit", expr}, {"offset", expr}},
	"ORDER_MODIFIER":         {{"type", plain}, {"orders", orders}},
}

// orderKinds are the directions of ORDER BY.
var orderKinds = map[string]shape{
	"ASCENDING":     {{"type", plain}, {"null_order", word}, {"expression", expr}},
	"DESCENDING":    {{"type", plain}, {"null_order", word}, {"expression", expr}},
	"ORDER_DEFAULT": {{"type", plain}, {"null_order", word}, {"expression", expr}},
}

// typeInfos are what types have besides their names.
var typeInfos = map[string]shape{
	"ARRAY_TYPE_INFO":   with(ofTypeInfo, field{"child_type", dataType}, field{"size", plain}),
	"DECIMAL_TYPE_INFO": with(ofTypeInfo, field{"width", plain}, field{"scale", plain}),
	"GENERIC_TYPE_INFO": ofTypeInfo,
	"LIST_TYPE_INFO":    with(ofTypeInfo, field{"child_type", dataType}),
	"STRING_TYPE_INFO":  with(ofTypeInfo, field{"collation", plain}),
	"STRUCT_TYPE_INFO":  with(ofTypeInfo, field{"child_types", fieldTypes}),
	"UNBOUND_TYPE_INFO": with(ofTypeInfo, field{"name", plain}, field{"catalog", nothing}, field{"schema", nothing}, field{"user_type_modifiers", constants}),
}

// Nodes that have no kind.
var (
	statementShape = shape{{"node", node}, {"named_param_map", nothing}}
	sampleShape    = shape{{"sample_size", constant}, {"is_percentage", plain}, {"method", word}, {"seed", plain}}
	typeShape      = shape{{"id", word}, {"type_info", typeInfo}}
	caseShape      = shape{{"when_expr", expr}, {"then_expr", expr}}
	replaceShape   = shape{{"key", plain}, {"value", expr}}
	renameShape    = shape{{"key", columnName}, {"value", plain}}
	nameShape      = shape{{"catalog", plain}, {"schema", plain}, {"table", plain}, {"column", plain}}
	fieldShape     = shape{{"first", plain}, {"second", dataType}}
	pivotShape     = shape{{"pivot_expressions", exprs}, {"unpivot_names", plain}, {"entries", pivotValues}, {"pivot_enum", nothing}}
	entryShape     = shape{{"values", constants}, {"star_expr", expr}, {"alias", plain}}
	ctesShape      = shape{{"map", plain}}
	cteShape       = shape{{"key", plain}, {"value", plain}}
	cteBodyShape   = shape{{"aliases", plain}, {"query", statement}, {"materialized", word}, {"key_targets", exprs}}
	constantShape  = shape{{"type", dataType}, {"is_null", plain}, {"value", plain}}
)
