//go:build linux

// Package alltest opens the providers that run on one machine, for tests of what must
// be the same in all their sandboxes. It must hold no test of its own: what a provider
// promises is tested by providertest.
package alltest

import (
	"context"
	"os"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/docker"
	"github.com/cove-sandbox/cove/provider/gvisor"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// providers are opened with an agent; each may need something.
var providers = map[string]func(t *testing.T, agent string) (cove.Provider, error){
	"local": func(t *testing.T, agent string) (cove.Provider, error) {
		return local.New(local.Config{Dir: providertest.Dir(t), Agent: agent})
	},
	"gvisor": func(t *testing.T, agent string) (cove.Provider, error) {
		return gvisor.New(gvisor.Config{Dir: providertest.Dir(t), Agent: agent, Runsc: providertest.Needs(t, "gvisor", "COVE_TEST_RUNSC")})
	},
	"docker": func(t *testing.T, agent string) (cove.Provider, error) {
		return docker.New(docker.Config{Dir: providertest.Dir(t), Agent: agent, Host: providertest.Needs(t, "docker", "COVE_TEST_DOCKER_HOST"), Image: "cove-sandbox:test"})
	},
}

// Each runs a test with every provider that is ready here, as root, and closes it
// afterwards.
func Each(t *testing.T, test func(t *testing.T, p cove.Provider)) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("volumes of others' files and bounds on memory need root")
	}
	agent := program.Agent(t)
	for name, open := range providers {
		t.Run(name, func(t *testing.T) {
			if name != "local" {
				tier.Full(t, "local runs the same test")
			}
			p, err := open(t, agent)
			if err != nil {
				t.Fatal(err)
			}
			providertest.Ready(t, p)
			t.Cleanup(func() { _ = p.Close() })
			test(t, p)
		})
	}
}

// Sandbox makes a small sandbox without a network that has these volumes, which ends
// with the test.
func Sandbox(t *testing.T, p cove.Provider, memory cove.Bytes, volumes ...cove.Volume) cove.Sandbox {
	t.Helper()
	s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{
		Template: "base", Workspace: cove.Workspace{Kind: cove.WorkspaceMemory, Size: cove.MiB, Files: 100},
		Network: cove.Network{Mode: cove.NetworkNone}, Resources: cove.Resources{Memory: memory, CPUs: 1}, Volumes: volumes,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}
