//go:build !linux

package escape

// lockedElsewhere is false: no sandbox shares files with such a host.
func lockedElsewhere(string) bool { return false }
