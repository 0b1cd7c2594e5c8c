//go:build !lean

package cli_test

import (
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/cli"
)

func TestWhoServes(t *testing.T) {
	row := func(name string, place int, ready bool) cove.ProviderReport {
		return cove.ProviderReport{Name: name, Default: place == 0, Fallback: max(0, place), Capabilities: cove.Capabilities{Ready: ready}}
	}
	for want, rows := range map[string][]cove.ProviderReport{
		"": {row("fake", -1, true)},
		"sandboxes are made by docker, and by nobody else":                                      {row("fake", -1, true), row("docker", 0, true)},
		"sandboxes are made by docker; where it is not ready, by gvisor, then local":            {row("local", 2, true), row("docker", 0, true), row("gvisor", 1, true)},
		"sandboxes are made by local now, because docker is not ready":                          {row("docker", 0, false), row("gvisor", 1, false), row("local", 2, true)},
		"no sandboxes can be made: docker is not ready, and SANDBOX_FALLBACK names nobody else": {row("docker", 0, false), row("local", -1, true)},
		"no sandboxes can be made: neither docker nor gvisor, local is ready":                   {row("docker", 0, false), row("gvisor", 1, false), row("local", 2, false)},
	} {
		if got := cli.WhoServes(rows); got != want {
			t.Errorf("%+v: %q, want %q", rows, got, want)
		}
	}
}
