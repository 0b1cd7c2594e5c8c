// Package duckexe has DuckDB inside: cmd/cove-duckdb, which make build compiles,
// where there is a C compiler, and puts into this package, compressed. It is kept as
// a file that is written once for each build, in a directory that sandboxes see.
//
// It must not run the executable, nor decide where it belongs, and it links nothing
// of DuckDB.
package duckexe
