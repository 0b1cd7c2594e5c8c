//go:build lean

package daemon

import "github.com/cove-sandbox/cove/engine"

// interpreters does nothing: a run uses neither interpreters nor data runs.
func interpreters(*engine.Config) {}
