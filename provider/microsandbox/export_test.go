//go:build linux

package microsandbox

import "time"

// SetUser makes programs another user inside, whose processes are counted alone.
func SetUser(uid int) { user = uid }

// Hurry waits less for a server that does not answer, until the function returned
// is called.
func Hurry() func() {
	m, s := metricsTime, stopTime
	metricsTime, stopTime = 300*time.Millisecond, 300*time.Millisecond
	return func() { metricsTime, stopTime = m, s }
}

// HurryStart waits little for the answer to a start.
func HurryStart() func() {
	before := startShare
	startShare = 0.01
	return func() { startShare = before }
}
