//go:build linux

package microsandbox_test

import (
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/microsandbox"
	"github.com/cove-sandbox/cove/provider/microsandbox/msbtest"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// serverKey signs the keys of tests.
const serverKey = "0123456789abcdefghijABCDEFGHIJ01"

// sized is the sandbox that a machine is.
func sized(s msbtest.Size) cove.Spec {
	return cove.Spec{Resources: cove.Resources{Memory: s.Memory, CPUs: float64(s.CPUs)}}
}

// theatre is what plays microsandbox for one test.
type theatre struct {
	machines *msbtest.Machines
	server   *msbtest.Server
	url      string
	program  *msbtest.Program
	msb      string // the path of an executable that is msb
}

var (
	theatresMu sync.Mutex
	theatres   = map[*testing.T]*theatre{}
)

// stage returns the theatre of a test, the same one whenever it is asked.
func stage(t *testing.T) *theatre {
	t.Helper()
	theatresMu.Lock()
	defer theatresMu.Unlock()
	if th := theatres[t]; th != nil {
		return th
	}
	th := &theatre{machines: msbtest.NewMachines(msbtest.NewRooted(t), sized)}
	th.server = msbtest.NewServer(th.machines, serverKey)
	httpd := httptest.NewServer(th.server)
	th.url = httpd.URL
	th.program = msbtest.NewProgram(th.machines)
	dir := t.TempDir()
	door := filepath.Join(dir, "door")
	l, err := net.Listen("unix", door)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		th.program.Serve(l)
	}()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	th.msb = filepath.Join(dir, "msb")
	if err := os.WriteFile(th.msb, fmt.Appendf(nil, "#!/bin/sh\nexec %q %s %q \"$@\"\n", self, standIn, door), 0o755); err != nil {
		t.Fatal(err)
	}
	theatres[t] = th
	t.Cleanup(func() {
		theatresMu.Lock()
		delete(theatres, t)
		theatresMu.Unlock()
		th.server.Close()
		httpd.CloseClientConnections()
		httpd.Close()
		_ = l.Close()
		<-served
		if left := th.machines.Names(); len(left) > 0 {
			t.Errorf("machines are left: %v", left)
		}
	})
	return th
}

// key makes a key for a namespace.
func key(t *testing.T, namespace string) string {
	t.Helper()
	k, err := msbtest.Keygen(serverKey, namespace, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// rpcConfig reaches the server of the test.
func rpcConfig(t *testing.T, th *theatre) microsandbox.Config {
	t.Helper()
	return microsandbox.Config{
		Dir: providertest.Dir(t), Transport: "rpc", ServerURL: th.url, APIKey: key(t, "tests"), Namespace: "tests", Agent: program.Agent(t), Memory: 256 * cove.MiB,
	}
}

// cliConfig reaches the program of the test.
func cliConfig(t *testing.T, th *theatre) microsandbox.Config {
	t.Helper()
	return microsandbox.Config{Dir: providertest.Dir(t), Transport: "cli", Program: th.msb, Agent: program.Agent(t), Memory: 256 * cove.MiB}
}

func opened(t *testing.T, cfg microsandbox.Config) *microsandbox.Provider {
	t.Helper()
	p, err := microsandbox.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestConformance runs the suite with the server of 0.2 that package msbtest plays.
func TestConformance(t *testing.T) {
	providertest.Run(t, func(t *testing.T) cove.Provider {
		p := opened(t, rpcConfig(t, stage(t)))
		providertest.Ready(t, p)
		return p
	}, tier.Pick([]string{"exec"}, groups()...)...)
}

// TestConformanceCLI runs it with a program that plays msb.
func TestConformanceCLI(t *testing.T) {
	tier.Full(t, "TestConformance runs over RPC; TestProgramFaults and TestWhicheverAnswers use the program")
	providertest.Run(t, func(t *testing.T) cove.Provider {
		p := opened(t, cliConfig(t, stage(t)))
		providertest.Ready(t, p)
		return p
	}, transportGroups...)
}

// transportGroups are those in which another transport can make a difference.
var transportGroups = []string{"lifecycle", "exec", "streams", "files", "terminal", "attach"}

// groups are all but the attacks: machines of the tests are sandboxes of provider
// local, whose own tests run them.
func groups() []string {
	var names []string
	for _, c := range providertest.Cases() {
		if name, _, _ := strings.Cut(c, "/"); name != "escape" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
