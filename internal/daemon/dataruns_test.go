package daemon_test

import (
	"os"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/daemon/daemontest"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/platformtest/dataruns"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// dataProviders are the providers that run questions on this machine with nothing
// but settings. Those that need a server to play them are tested with it.
func dataProviders() map[string]func(t *testing.T) daemontest.Data {
	return map[string]func(t *testing.T) daemontest.Data{
		"local": func(*testing.T) daemontest.Data { return daemontest.Data{Served: true} },
		"gvisor": func(t *testing.T) daemontest.Data {
			t.Helper()
			return daemontest.Data{
				Settings: map[string]string{"COVE_GVISOR_RUNSC": engine(t, "gvisor", "COVE_TEST_RUNSC")},
				Parts:    daemon.Parts{Agent: daemontest.Agent(t)},
			}
		},
		"docker": func(t *testing.T) daemontest.Data {
			t.Helper()
			return daemontest.Data{
				Settings: map[string]string{"DOCKER_HOST": engine(t, "docker", "COVE_TEST_DOCKER_HOST"), "DOCKER_IMAGE": "cove-sandbox:test", "DOCKER_CPU_LIMIT": "1"},
				Parts:    daemon.Parts{Agent: daemontest.Agent(t)},
			}
		},
	}
}

// engine is where the engine of a provider is, or the test is skipped.
func engine(t *testing.T, provider, variable string) string {
	t.Helper()
	at := os.Getenv(variable)
	if at == "" {
		providertest.Require(t, provider, cove.Capabilities{Why: variable + " names no engine", Remedy: "run make test, which starts one, or set it"})
	}
	return at
}

// TestDataRuns runs the acceptance list of data runs on every provider.
func TestDataRuns(t *testing.T) {
	daemontest.NeedDuckDB(t)
	for name, provider := range dataProviders() {
		t.Run(name, func(t *testing.T) {
			if name != "local" {
				tier.Full(t, "local answers the same queries")
			}
			d := provider(t)
			d.Provider = name
			// internal/datarun/pyrun tests values and Python queries in the gate.
			dataruns.Run(t, d.Open, tier.Pick([]string{"acceptance", "faults", "errors", "sql", "files", "grants", "datasets", "sessions", "chat"})...)
		})
	}
}
