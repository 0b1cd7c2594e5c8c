//go:build linux && embedagent

package guest

import _ "embed"

// lean is the lean agent. The file is not in the tree: scripts/build.sh makes it
// for the machine that it builds for, and lays it over this place.
//
//go:embed agent.bin
var lean []byte
