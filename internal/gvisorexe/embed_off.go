//go:build linux && !embedgvisor

package gvisorexe

// image is the executable; a plain build has none.
var image []byte
