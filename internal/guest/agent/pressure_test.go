//go:build linux

package agent_test

import (
	"testing"
	"time"

	"github.com/cove-sandbox/cove/internal/guest/agent"
)

func TestMemoryInUse(t *testing.T) {
	for text, want := range map[string]uint64{
		"":                                     0,
		"MemTotal: 5 kB\n":                     0,
		"AnonPages:\n":                         0,
		"AnonPages: many kB\n":                 0,
		"AnonPages: 99999999999999999999 kB":   0,
		"MemFree: 1 kB\nAnonPages:  2048 kB\n": 2 << 20,
		"AnonPages: 100 kB\nShmem: 30 kB\n":    100 << 10, // files are part of it
	} {
		if got := agent.ParseUse([]byte(text)); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestGaps(t *testing.T) {
	for _, c := range []struct {
		used, most uint64
		want       time.Duration
	}{
		{10, 10, 5 * time.Millisecond},
		{20, 10, 5 * time.Millisecond},
		{0, 1 << 20, 5 * time.Millisecond},
		{1 << 20, 65 << 20, 15625 * time.Microsecond},
		{0, 1 << 30, 50 * time.Millisecond},
		{0, 1 << 63, 50 * time.Millisecond},
	} {
		if got := agent.Gap(c.used, c.most); got != c.want {
			t.Errorf("with %d of %d it looks again after %v", c.used, c.most, got)
		}
	}
}
