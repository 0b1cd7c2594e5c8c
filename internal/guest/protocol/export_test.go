//go:build linux

package protocol

import (
	"testing"
	"time"
)

// HurryUp makes hosts impatient for the time of a test.
func HurryUp(t *testing.T, most time.Duration) {
	before := patience
	patience = most
	t.Cleanup(func() { patience = before })
}
