package duckexe

import "github.com/cove-sandbox/cove"

// name is that of the executable's file.
const name = "cove-duckdb"

// missing says what a build without DuckDB lacks.
func missing() error {
	return cove.Errorf(cove.Unsupported, "this build has no DuckDB").
		Remedy("install a C compiler (Debian: g++) and run make build")
}
