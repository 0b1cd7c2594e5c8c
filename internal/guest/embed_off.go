//go:build linux && !embedagent

package guest

// lean is the lean agent; a plain build has none.
var lean []byte
