//go:build linux && embedagent

package guest

import _ "embed"

// lean is the lean agent, which the build made before.
//
//go:embed embedded/agent.bin
var lean []byte
