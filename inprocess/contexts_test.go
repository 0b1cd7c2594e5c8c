package inprocess_test

import (
	"testing"

	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/platformtest"
)

// TestContextsOfRealSandboxes runs what the suite says about code that remembers with
// the interpreters of this machine.
func TestContextsOfRealSandboxes(t *testing.T) {
	needLocal(t)
	for _, lang := range []*platformtest.Language{platformtest.Python(), platformtest.Node(), platformtest.Bash()} {
		t.Run(lang.Name, func(t *testing.T) {
			if lang.Name != "python" {
				tier.Full(t, "internal/kernel runs each interpreter; here Python stands for all")
			}
			platformtest.Run(t, func(t *testing.T, o platformtest.Options) platformtest.Harness {
				return openHarness(t, "local", o, platformtest.Extras{Code: lang})
			}, "contexts")
		})
	}
}
