//go:build lean

package daemon

import (
	"log/slog"

	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/config"
)

// chats does nothing: a run answers no messages.
func chats(*engine.Config, config.Config, *slog.Logger) (end func() error, err error) {
	return func() error { return nil }, nil
}
