//go:build linux && !embedduckdb

package duckexe

// image is the executable; a plain build has none.
var image []byte
