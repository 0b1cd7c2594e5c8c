package sdktest_test

import (
	"context"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/daemon/daemontest"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/microsandbox"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// msbNamespace is where the machines of the provider are.
const msbNamespace = "tests"

// serveMSB runs a server for clients of microsandbox, with sandboxes of the provider
// local, until the test ends.
func serveMSB(t *testing.T) (at daemon.Ready, key string) {
	t.Helper()
	// A program may fill the workspace, which is in memory, instead of its memory.
	at, _ = daemontest.Serve(t, settings("local", "COVE_MSB_ADDR=127.0.0.1:0", "MAX_WORKSPACE_SIZE_MB=64"))
	return at, msbKey(t, at, msbNamespace)
}

// openMSB returns the provider microsandbox, whose machines are the server's sandboxes.
func openMSB(t *testing.T, at daemon.Ready, key string) *microsandbox.Provider {
	t.Helper()
	p, err := microsandbox.New(microsandbox.Config{
		Dir: providertest.Dir(t), Transport: "rpc", ServerURL: at.MSBURL, APIKey: key, Namespace: msbNamespace, Agent: daemontest.Agent(t), Memory: 256 * cove.MiB,
	})
	if err != nil {
		t.Fatal(err)
	}
	if caps, err := p.Probe(t.Context()); err != nil || !caps.Ready {
		t.Fatalf("Probe gives %+v, %v", caps, err)
	}
	return p
}

// wantNoSandbox wants no sandbox to be left at the server.
func wantNoSandbox(t *testing.T, at daemon.Ready) {
	t.Helper()
	c, err := client.New("unix://"+at.Socket, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for s, err := range c.Sessions().List(context.Background(), cove.SessionFilter{}) {
		t.Errorf("a sandbox is left: %+v, %v", s, err)
	}
}

// TestMSBProvider runs a part of the suite of providers with the provider microsandbox
// as a client of cove serve.
func TestMSBProvider(t *testing.T) {
	tier.Full(t, "TestMSBProviderIsolation makes a sandbox in the same way")
	at, key := serveMSB(t)
	begun := map[*testing.T]bool{}
	providertest.Run(t, func(t *testing.T) cove.Provider {
		if !begun[t] { // the first time, so that it comes after all that the case cleans up
			begun[t] = true
			t.Cleanup(func() { wantNoSandbox(t, at) })
		}
		return openMSB(t, at, key)
	}, "lifecycle", "exec", "streams", "files", "terminal", "attach")
}

// TestMSBProviderIsolation: a sandbox of Cove's is not taken for a virtual machine, nor
// is there more promised of it than its server holds.
func TestMSBProviderIsolation(t *testing.T) {
	at, key := serveMSB(t)
	p := openMSB(t, at, key)
	caps, err := p.Probe(t.Context())
	if i := caps.Isolation; err != nil || i.Boundary != cove.BoundaryNamespaces || i.PIDs != cove.Absent || i.Disk != cove.Absent {
		t.Errorf("Probe gives %+v, %v", i, err)
	}
	plain := cove.Spec{Template: "base", Workspace: cove.Workspace{Kind: cove.WorkspaceMemory}, Network: cove.Network{Mode: cove.NetworkOpen}}
	virtual := plain
	virtual.Require.Isolation = cove.BoundaryMicroVM
	if s, err := p.Create(t.Context(), cove.NewID(), virtual); cove.CodeOf(err) != cove.Unsupported {
		t.Errorf("a machine that must be virtual gives %v, %v", s, err)
	}
	id := cove.NewID()
	if _, err := p.Create(t.Context(), id, plain); err != nil {
		t.Fatal(err)
	}
	// The provider notes what the sandbox was made as: an attached one is no more than that.
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	second := openMSB(t, at, key)
	t.Cleanup(func() {
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := second.Attach(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Isolation().Boundary; got != cove.BoundaryNamespaces {
		t.Errorf("an attached sandbox has %s around it", got)
	}
	if err := s.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	wantNoSandbox(t, at)
}
