//go:build linux

package docker_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/provider/docker"
	"github.com/cove-sandbox/cove/provider/providertest"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

func TestMain(m *testing.M) {
	if escape.Summoned(os.Args) {
		syscall.Exit(escape.Main(os.Args[1:])) // at once: the race detector would sleep first
	}
	linuxtest.Main(m, map[string]linuxtest.Func{"tests": linuxtest.Tests})
}

// engineAt is the config for the engine that an environment variable names. It
// skips the test where there is none, unless COVE_REQUIRE names docker.
func engineAt(t *testing.T, variable string) docker.Config {
	t.Helper()
	host := os.Getenv(variable)
	if host == "" {
		caps := cove.Capabilities{Why: variable + " names no engine", Remedy: "run make test, which starts one, or set it"}
		if variable == "COVE_TEST_DOCKER_HOST" {
			providertest.Require(t, "docker", caps)
		}
		t.Skip(caps.Why + ": " + caps.Remedy)
	}
	_ = os.Getenv("COVE_TEST_RUNSC") // a runtime of the engine is an input of the test
	agent := program.Agent(t)        // tests themselves are linked to libraries that not every image has
	return docker.Config{Dir: providertest.Dir(t), Host: host, Agent: agent, Image: testImage}
}

// testImage is what scripts/docker.sh and scripts/podman.sh put into an engine.
const testImage = "cove-sandbox:test"

// openAt opens a provider that is ready.
func openAt(t *testing.T, cfg docker.Config) *docker.Provider {
	t.Helper()
	p, err := docker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	providertest.Ready(t, p)
	return p
}
