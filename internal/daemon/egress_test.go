package daemon_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// What the settings say about the ways out of sandboxes reaches the providers,
// who check it.
func TestEgressSettings(t *testing.T) {
	for name, change := range map[string]func(*config.Config){
		"secret": func(c *config.Config) {
			c.Secrets = config.Secrets{"key": {Hosts: []string{"a.test"}, Header: "Host", Value: "hunter2"}}
		},
		"private": func(c *config.Config) { c.Egress.Private = []string{netip.MustParseAddr("::ffff:10.0.0.1").String()} },
		"limit":   func(c *config.Config) { c.Egress.Rate = 1 },
	} {
		var cfg config.Config
		change(&cfg)
		_, err := daemon.Doctor(t.Context(), cfg)
		if cove.CodeOf(err) != cove.Invalid || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
