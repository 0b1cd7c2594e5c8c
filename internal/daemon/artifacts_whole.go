//go:build !lean

package daemon

import (
	"path/filepath"
	"time"

	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/artifact"
	"github.com/cove-sandbox/cove/internal/config"
)

// artifacts gives an engine the place where code and results are kept. A run in
// process keeps them where a server of the same COVE_HOME does.
func artifacts(ec *engine.Config, cfg config.Config) {
	when := artifact.When(cfg.Exec.StoreCode)
	if when == artifact.Never {
		return
	}
	ec.Artifacts = artifact.New(filepath.Join(cfg.Home, "artifacts", "executions"), artifact.Config{
		When: when, MaxAge: time.Duration(cfg.Exec.StoreDays * float64(24*time.Hour)), MaxBytes: cfg.Exec.StoreMax,
		Secrets: cfg.Credentials(),
	})
}
