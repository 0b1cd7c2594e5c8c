//go:build linux

package microsandbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/microsandbox"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// faceNamespace is where the machines of the face's tests are.
const faceNamespace = "tests"

// face is cove serve, as a process of its own with sandboxes of the provider local.
type face struct {
	program string   // this executable under the name cove
	env     []string // of the programs
	url     string   // for microsandbox's clients
	key     string   // of cove key create --msb
	socket  string
}

// serveFace runs a server until the test ends.
func serveFace(t *testing.T) *face {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := &face{program: filepath.Join(dir, "cove")}
	if err := os.Symlink(self, f.program); err != nil {
		t.Fatal(err)
	}
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "COVE_") && !strings.HasPrefix(pair, "MSB_") && !strings.HasPrefix(pair, "SANDBOX_") {
			f.env = append(f.env, pair)
		}
	}
	f.env = append(f.env, "COVE_HOME="+filepath.Join(dir, "home"), "COVE_ADDR=127.0.0.1:0", "COVE_MSB_ADDR=127.0.0.1:0", "SANDBOX_PROVIDER=local")
	// A program may fill the room of the workspace with memory instead of files.
	f.env = append(f.env, "MAX_WORKSPACE_SIZE_MB=64")
	server := exec.Command(f.program, "serve")
	var log strings.Builder
	server.Env, server.Stderr = f.env, &log
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := errors.Join(server.Process.Signal(syscall.SIGTERM), server.Wait())
		if err != nil {
			t.Errorf("the server ended with %v", err)
		}
		if t.Failed() {
			t.Log(lastLines(log.String()))
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan() && f.url == ""; {
		word, value, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		switch value = strings.TrimSpace(value); word {
		case "socket":
			f.socket = value
		case "msb":
			f.url = strings.TrimPrefix(value, "MSB_SERVER_URL=")
		}
	}
	if f.url == "" {
		t.Fatal("the server does not say where microsandbox's clients find it")
	}
	f.key = f.makeKey(t)
	return f
}

// lastLines is the end of a log, as much as helps.
func lastLines(log string) string {
	const most = 4000
	return log[max(0, len(log)-most):]
}

// makeKey makes a key for the namespace, as an operator does.
func (f *face) makeKey(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), f.program, "key", "create", "--msb", "--name", "tests", "--scope", "*", "--namespace", faceNamespace, "--json")
	cmd.Env, cmd.Stderr = f.env, os.Stderr
	out, err := cmd.Output()
	var made struct {
		Secret string `json:"secret"`
	}
	if err == nil {
		err = json.Unmarshal(out, &made)
	}
	if err != nil || !strings.HasPrefix(made.Secret, "msb_") {
		t.Fatalf("cove key create gives %v", err)
	}
	return made.Secret
}

// open returns a provider whose machines are the server's sandboxes.
func (f *face) open(t *testing.T) *microsandbox.Provider {
	t.Helper()
	p := opened(t, microsandbox.Config{
		Dir: providertest.Dir(t), Transport: "rpc", ServerURL: f.url, APIKey: f.key, Namespace: faceNamespace, Agent: agent(t), Memory: 256 * cove.MiB,
	})
	caps, err := p.Probe(t.Context())
	if err != nil || !caps.Ready {
		t.Fatalf("Probe gives %+v, %v", caps, err)
	}
	return p
}

// clean wants no sandbox to be left at the server.
func (f *face) clean(t *testing.T) {
	t.Helper()
	c, err := client.New("unix://"+f.socket, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for s, err := range c.Sessions().List(context.Background(), cove.SessionFilter{}) {
		t.Errorf("a sandbox is left: %+v, %v", s, err)
	}
}

// needLocal skips where the provider local is not ready.
func needLocal(t *testing.T) {
	t.Helper()
	p, err := local.New(local.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	providertest.Ready(t, p)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestConformanceFace runs the suite, with its attacks, over cove serve: the provider
// is the client, and its machines are sandboxes of the provider local.
func TestConformanceFace(t *testing.T) {
	needLocal(t)
	f := serveFace(t)
	begun := map[*testing.T]bool{}
	providertest.Run(t, func(t *testing.T) cove.Provider {
		if !begun[t] { // the first time, so that it comes after all that the case cleans up
			begun[t] = true
			t.Cleanup(func() { f.clean(t) })
		}
		return armed{f.open(t)}
	})
}

// A sandbox of Cove's is not taken for a virtual machine, nor is there more promised
// of it than its server holds.
func TestFaceIsNoMachine(t *testing.T) {
	needLocal(t)
	f := serveFace(t)
	p := closed(t, f.open(t))
	caps, err := p.Probe(t.Context())
	if i := caps.Isolation; err != nil || i.Boundary != cove.BoundaryNamespaces || i.PIDs != cove.Absent || i.Disk != cove.Absent {
		t.Errorf("Probe gives %+v, %v", i, err)
	}
	want := spec()
	want.Require.Isolation = cove.BoundaryMicroVM
	if s, err := p.Create(t.Context(), cove.NewID(), want); cove.CodeOf(err) != cove.Unsupported {
		t.Errorf("a machine that must be virtual gives %v, %v", s, err)
	}
	id := cove.NewID()
	if _, err := p.Create(t.Context(), id, spec()); err != nil {
		t.Fatal(err)
	}
	// What it was made as is written down: an attached one is not believed to be more.
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	second := closed(t, f.open(t))
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
	f.clean(t)
}
