//go:build lean

package daemon

import (
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/scope"
)

// policies gives an engine the policy of settings that name none: where there is
// one, a run is left to the whole program.
func policies(ec *engine.Config, _ config.Config) error {
	ec.Policy = scope.Policy{}
	return nil
}
