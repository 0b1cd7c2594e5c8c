//go:build lean

package daemon

import (
	"context"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/config"
)

// dataRuns does nothing: a run of a program asks no data.
func dataRuns(context.Context, *assembly, *engine.Config, config.Config, []cove.RunFile) error {
	return nil
}
