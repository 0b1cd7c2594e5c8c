//go:build linux && embedgvisor

package gvisorexe

import _ "embed"

// image is the executable, compressed. The file is not in the tree:
// scripts/build.sh makes it for the machine that it builds for, and lays it over
// this place.
//
//go:embed cove-gvisor.gz
var image []byte
