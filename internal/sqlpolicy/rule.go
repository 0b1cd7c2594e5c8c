package sqlpolicy

// The rules, as a refusal names them.
const (
	RuleOneStatement  = "sql.one_statement"  // exactly one statement
	RuleSelectOnly    = "sql.select_only"    // and that a SELECT
	RuleText          = "sql.text"           // text that can be read in one way only
	RuleSize          = "sql.size"           // bounds on the statement's size and depth
	RuleNode          = "sql.node"           // a part of a statement that is not listed
	RuleFunction      = "sql.function"       // a function that is not listed
	RuleTableFunction = "sql.table_function" // the same in FROM
	RuleTable         = "sql.table"          // a table that is not there, or not granted
	RuleColumn        = "sql.column"         // a column that is not granted
	RuleCatalog       = "sql.catalog"        // what the engine says about itself
	RuleParameter     = "sql.parameter"      // a place for a value, and no value
)
