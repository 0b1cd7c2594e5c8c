// Package sqlpolicy decides whether a statement may be asked of data, and names the
// tables and columns that it needs.
//
// It judges what the engine's own parser made of the text: the syntax tree that
// DuckDB writes with json_serialize_sql. Everything is refused that is not listed:
// a node, a field of a node, a kind of join, a function, a table that the caller's
// grant does not show. A newer parser that knows more is therefore refused until
// somebody has read what it says.
//
//	vocabulary  which nodes there are, and what each of their fields may hold
//	walk        visits every part of a tree, with bounds on size and depth
//	query       what a SELECT, a set operation and a recursive query bring into scope
//	table       what FROM names: tables of datasets, common table expressions, functions
//	column      which columns are meant, and whether the grant shows them
//	function    which functions may be called
//	place       where in the text it is, for the refusal; it decides nothing
//
// A common table expression hides a table of its name where the engine would let it,
// and nowhere else.
//
// The package does no I/O, keeps no state between statements and runs nothing. It
// is one fence of three and must not be taken for the others: a table or column that
// is not granted is never loaded, and the engine that has loaded them opens no file.
package sqlpolicy
