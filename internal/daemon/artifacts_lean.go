//go:build lean

package daemon

import (
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/config"
)

// artifacts does nothing: a run is a program and not code.
func artifacts(*engine.Config, config.Config) {}
