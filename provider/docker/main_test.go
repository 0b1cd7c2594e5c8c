//go:build linux

package docker_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
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

// leanAgent is the path of the agent as it is shipped: what tests are linked to
// does not run in every image. It is kept in memory, so that nothing of it is left.
var leanAgent = sync.OnceValues(func() (string, error) {
	if given := os.Getenv("COVE_TEST_AGENT"); given != "" {
		return given, nil
	}
	dir, err := os.MkdirTemp("", "cove-agent-*")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "cove-agent")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, "../../cmd/cove-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	image, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	fd, err := unix.MemfdCreate("cove-agent", unix.MFD_CLOEXEC)
	if err != nil {
		return "", err
	}
	path := fmt.Sprintf("/proc/self/fd/%d", fd)
	return path, os.WriteFile(path, image, 0o600)
})

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
	agent, err := leanAgent()
	if err != nil {
		t.Fatalf("build the agent: %v", err)
	}
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
