//go:build linux && embedduckdb

package duckexe

import _ "embed"

// image is the executable, compressed. The file is not in the tree:
// scripts/build.sh makes it for the machine that it builds for, and lays it over
// this place.
//
//go:embed cove-duckdb.gz
var image []byte
