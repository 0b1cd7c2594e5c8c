package gvisor

import (
	"os"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/gvisorexe"
)

// builtin returns the runtime of this build.
func builtin(cfg Config) (string, error) {
	if cfg.own != "" {
		return cfg.own, nil
	}
	return gvisorexe.Installed(cfg.Dir)
}

// findAgent returns the agent that is put into sandboxes.
func findAgent(cfg Config) ([]byte, error) {
	if cfg.Agent == "" {
		image, _, err := guest.Image()
		return image, err
	}
	image, err := os.ReadFile(cfg.Agent)
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the agent %.200q cannot be read", cfg.Agent)
	}
	return image, nil
}
