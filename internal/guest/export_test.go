//go:build linux

package guest

// Load is what Executable does with the lean agent.
var Load = load
