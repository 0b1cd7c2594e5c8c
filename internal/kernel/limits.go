package kernel

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds on what comes out of a driver.
const (
	maxStray     = 64 << 10 // output between two runs that the next one hears
	maxQueue     = 64 << 10 // output that waits for the other stream
	maxValues    = 64       // values of one run
	maxForms     = 16       // forms of one value
	maxValueSize = 8 << 20  // all values of one run
	maxType      = 80       // the name of a form
	maxName      = 200      // the name of an error
	maxText      = 64 << 10 // the value of an error, its traceback
	maxSentence  = 300      // last words
)

// Times that a driver has.
const (
	startTime    = 30 * time.Second // to say hello
	killTime     = 10 * time.Second // to be gone after a kill
	leastGrace   = time.Second      // a busy machine takes a while to deliver a signal
	mostGrace    = 2 * time.Second
	interruptMax = 2 * time.Second // to send an interrupt
)

// grace is how long code that was interrupted has to end, before its interpreter
// does.
func grace(wall time.Duration) time.Duration {
	if wall <= 0 {
		return mostGrace
	}
	return min(max(wall/2, leastGrace), mostGrace)
}

// clean makes a text from outside one that can be shown: valid, and not longer than
// most. Of a longer one the head and the tail stay.
func clean(text string, most int) string {
	if len(text) > most {
		const gap, halves = "\n…\n", 12 // a character that is cut in two may become longer
		part := (most - len(gap) - halves) / 2
		text = text[:part] + gap + text[len(text)-part:]
	}
	if utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
