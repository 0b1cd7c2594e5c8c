//go:build linux

package guest

// Install and Whole are what Installed does with the lean agent.
var (
	Install = install
	Whole   = installed
)

// Load is what Executable does with the lean agent.
var Load = load

// Portable is what Image does.
var Portable = portable
