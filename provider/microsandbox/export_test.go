//go:build linux

package microsandbox

import "time"

// SetUser makes programs another user inside, whose processes are counted alone.
func SetUser(uid int) { user = uid }

// Hurry waits less for a server or an msb that does not answer, until the function
// returned is called.
func Hurry() func() {
	h, m, s, d := healthTime, metricsTime, stopTime, doctorTime
	healthTime, metricsTime, stopTime, doctorTime = 300*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond
	return func() { healthTime, metricsTime, stopTime, doctorTime = h, m, s, d }
}

// HurryMail waits little before a question is asked again.
func HurryMail() func() {
	before := mailPause
	mailPause = time.Millisecond
	return func() { mailPause = before }
}

// HurryStart waits little for the answer to a start.
func HurryStart() func() {
	before := startShare
	startShare = 0.01
	return func() { startShare = before }
}
