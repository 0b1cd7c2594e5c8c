//go:build !lean

package daemon

import (
	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/analyze"
	"github.com/cove-sandbox/cove/internal/kernel"
	"github.com/cove-sandbox/cove/internal/rootfs"
	"github.com/cove-sandbox/cove/provider/fake"
)

// interpreters gives an engine what runs code that remembers. The interpreters and
// the data runs that only pretend are there only where the provider that only
// pretends is: they compute in this process, and no sandbox bounds what they take.
func interpreters(ec *engine.Config) {
	ec.Kernels = map[string]cove.Kernels{"": kernel.New()}
	for _, p := range ec.Providers {
		if own, ok := cove.As[cove.KernelMaker](p); ok {
			ec.Kernels[p.Name()] = own.Kernels()
		}
	}
	ec.Preload = func(template, language string) []string { return rootfs.Preload(template)[language] }
	ec.Analyzers = map[string]cove.Analyzer{"": analyze.New()}
	if pretends(ec) {
		ec.Kernels[pretender], ec.Analyzers[pretender] = fake.Kernels{}, fake.Analyzer{}
		ec.Runners = map[string]cove.Runner{pretender: fake.Runner{}}
	}
}
