//go:build linux

package microsandbox_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/provider/microsandbox"
	"github.com/cove-sandbox/cove/provider/microsandbox/msbtest"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// switchable is a server that can be away.
type switchable struct {
	handler http.Handler

	mu   sync.Mutex
	away bool
}

func (s *switchable) set(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func (s *switchable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	away := s.away
	s.mu.Unlock()
	if away {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
		return
	}
	s.handler.ServeHTTP(w, r)
}

// noVirtualization is what the original's doctor says on a machine without.
const noVirtualization = `info Platform: Linux x86_64
   ✗ CPU virt     not found
error: CPU virtualization is not available
  → no vmx (Intel) or svm (AMD) flag in /proc/cpuinfo
  → inside a VM, enable nested virtualization on the host
`

func TestProgramRefusals(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "msb")
	if err := os.WriteFile(broken, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		quirks      msbtest.ProgramQuirks
		program     string
		why, remedy string
	}{
		"no msb":               {program: "/no/such/msb", why: "no msb program", remedy: "MSB_PATH"},
		"msb that cannot run":  {program: broken, why: "cannot be run", remedy: "MSB_PATH"},
		"no virtualization":    {quirks: msbtest.ProgramQuirks{Doctor: noVirtualization}, why: "CPU virtualization is not available", remedy: "nested virtualization"},
		"doctor without words": {quirks: msbtest.ProgramQuirks{Doctor: "\x1b[31m\xff"}, why: "ended with 1", remedy: "by hand"},
		"doctor that hangs":    {quirks: msbtest.ProgramQuirks{Hang: true}, why: "does not come to an end", remedy: "by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			th := stage(t)
			th.program.Set(tc.quirks)
			if tc.quirks.Hang {
				t.Cleanup(microsandbox.Hurry())
			}
			cfg := cliConfig(t, th)
			if tc.program != "" {
				cfg.Program = tc.program
			}
			p := closed(t, opened(t, cfg))
			caps, err := p.Probe(t.Context())
			if err != nil || caps.Ready || !strings.Contains(caps.Why, tc.why) || !strings.Contains(caps.Remedy, tc.remedy) {
				t.Errorf("Probe gives %+v, %v; want %q and %q", caps, err, tc.why, tc.remedy)
			}
		})
	}
}

// TestNeither is a host with neither a server nor msb: both reasons are told.
func TestNeither(t *testing.T) {
	p := closed(t, opened(t, microsandbox.Config{Dir: t.TempDir(), ServerURL: "http://127.0.0.1:1", Program: "/no/such/msb"}))
	caps, err := p.Probe(t.Context())
	if err != nil || caps.Ready || !strings.Contains(caps.Why, "cannot be reached") || !strings.Contains(caps.Why, "no msb program") {
		t.Errorf("Probe gives %+v, %v", caps, err)
	}
	if _, err := p.Create(t.Context(), cove.NewID(), spec()); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("Create gives %v", err)
	}
	for id, err := range p.List(t.Context()) {
		t.Errorf("List has %s, %v", id, err)
	}
}

// TestWhicheverAnswers takes the server where there is one, and msb where not.
func TestWhicheverAnswers(t *testing.T) {
	th := stage(t)
	cfg := rpcConfig(t, th)
	cfg.Transport, cfg.Program = "", th.msb
	networks := func() []cove.NetworkMode {
		p := closed(t, opened(t, cfg))
		caps, err := p.Probe(t.Context())
		if err != nil || !caps.Ready {
			t.Fatalf("Probe gives %+v, %v", caps, err)
		}
		return caps.Networks
	}
	if got := networks(); len(got) != 1 {
		t.Errorf("the server gives %v", got)
	}
	cfg.ServerURL = "http://127.0.0.1:1"
	if got := networks(); len(got) != 2 {
		t.Errorf("msb gives %v", got)
	}
}

func TestProgramFaults(t *testing.T) {
	th := stage(t)
	cfg := cliConfig(t, th)
	p := closed(t, opened(t, cfg))
	th.program.Set(msbtest.ProgramQuirks{CreateFails: true})
	_, err := p.Create(t.Context(), cove.NewID(), spec())
	if cove.CodeOf(err) != cove.Unavailable || cove.ReasonOf(err) != cove.ReasonSandboxCreation || !strings.Contains(cove.MessageOf(err), "before agent relay") {
		t.Errorf("a machine that cannot boot gives %v", err)
	}
	nothingLeft(t, th.machines, cfg.Dir)
	th.program.Set(msbtest.ProgramQuirks{Garbage: true})
	for _, err := range p.List(t.Context()) {
		if cove.CodeOf(err) != cove.Unavailable {
			t.Errorf("a list that is none gives %v", err)
		}
	}
	th.program.Set(msbtest.ProgramQuirks{})
	s, err := p.Create(t.Context(), cove.NewID(), spec())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range th.machines.Names() {
		if size := th.machines.Size(name); size.Network != "public" || size.CPUs != 1 || size.Memory != 256*cove.MiB || size.Image != "microsandbox/python" {
			t.Errorf("the machine was asked for as %+v", size)
		}
	}
	if err := s.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, th.machines, cfg.Dir)
}

// TestMsb asks the msb that scripts/msb.sh has fetched. Where it can make machines,
// so can the provider; elsewhere its own reason is told, at once.
func TestMsb(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "../../scripts/msb.sh", "--path").Output()
	if err != nil {
		t.Skip("msb is not here: scripts/msb.sh fetches it")
	}
	t.Setenv("MSB_HOME", t.TempDir())
	msb := strings.TrimSpace(string(out))
	doctor := exec.CommandContext(t.Context(), msb, "doctor").Run()
	// A machine that somebody else has removed can be removed.
	lost := cove.NewID()
	if err := os.WriteFile(filepath.Join(providertest.Dir(t), string(lost)+".json"), []byte(`{"transport":"cli","made":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := closed(t, opened(t, microsandbox.Config{Dir: providertest.Dir(t), Transport: "cli", Program: msb, Agent: program.Agent(t)}))
	if err := p.Remove(t.Context(), lost); err != nil {
		t.Errorf("remove what is gone: %v", err)
	}
	caps, err := p.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if doctor == nil {
		if !caps.Ready {
			t.Errorf("msb's doctor is content, and Probe gives %+v", caps)
		}
		return
	}
	if caps.Ready || !strings.HasPrefix(caps.Why, "msb doctor: ") || strings.Contains(caps.Why, "ended with") || caps.Remedy == "" {
		t.Errorf("msb cannot make machines here, and Probe gives %+v", caps)
	}
	if _, err := p.Create(t.Context(), cove.NewID(), spec()); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("Create gives %v", err)
	}
	t.Logf("%s (%s)", caps.Why, caps.Remedy)
}

// TestLive runs the suite with a live microsandbox, which the MSB_ variables name.
func TestLive(t *testing.T) {
	if os.Getenv("RUN_MICROSANDBOX_TESTS") != "1" {
		t.Skip("RUN_MICROSANDBOX_TESTS=1 runs the suite with a live microsandbox")
	}
	microsandbox.SetUser(1000)
	t.Cleanup(func() { microsandbox.SetUser(programUser) })
	providertest.Run(t, func(t *testing.T) cove.Provider {
		p := opened(t, microsandbox.Config{
			Dir: providertest.Dir(t), Transport: os.Getenv("MSB_TRANSPORT"), ServerURL: os.Getenv("MSB_SERVER_URL"), APIKey: os.Getenv("MSB_API_KEY"),
			Namespace: os.Getenv("MSB_NAMESPACE"), Program: os.Getenv("MSB_PATH"), Image: os.Getenv("MSB_IMAGE"), Agent: program.Agent(t),
		})
		providertest.Ready(t, p)
		return p
	})
}
