package daemontest

import (
	"context"
	"path"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/platformtest/dataruns"
)

// faulty is a provider with a fault.
type faulty struct {
	cove.Provider

	fault dataruns.Fault
}

// Unwrap returns the provider.
func (f faulty) Unwrap() cove.Provider { return f.Provider }

// Create implements [cove.Provider].
func (f faulty) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if f.fault == dataruns.FaultStart {
		return nil, cove.Errorf(cove.Unavailable, "the engine does not answer").Remedy("start it")
	}
	s, err := f.Provider.Create(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	return faultySandbox{s, f.fault}, nil
}

// faultySandbox is a sandbox with a fault.
type faultySandbox struct {
	cove.Sandbox

	fault dataruns.Fault
}

// Unwrap returns the sandbox.
func (f faultySandbox) Unwrap() cove.Sandbox { return f.Sandbox }

// Start implements [cove.Sandbox].
func (f faultySandbox) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	switch {
	case f.fault == dataruns.FaultTransport:
		return nil, cove.Errorf(cove.Unavailable, "the connection to the sandbox is gone").Remedy("try again")
	case f.fault == dataruns.FaultAnswer && len(cmd.Argv) > 0 && strings.HasPrefix(path.Base(cmd.Argv[0]), "cove-duckdb"):
		cmd.Argv = []string{"/bin/sh", "-c", "echo '<html>not what was asked for</html>'; cat >/dev/null"}
	}
	return f.Sandbox.Start(ctx, cmd)
}
