//go:build linux

package microsandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/provider/microsandbox"
	"github.com/cove-sandbox/cove/provider/microsandbox/msbtest"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// rehearsal is a server over machines that can do next to nothing: for what goes
// wrong before one is furnished.
func rehearsal(t *testing.T) (*msbtest.Server, *msbtest.Machines, microsandbox.Config) {
	t.Helper()
	f, err := fake.New(fake.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	m := msbtest.NewMachines(f, func(msbtest.Size) cove.Spec {
		return cove.Spec{Template: "base", Workspace: cove.Workspace{Kind: cove.WorkspaceMemory}, Network: cove.Network{Mode: cove.NetworkNone}}
	})
	none := filepath.Join(t.TempDir(), "agent") // it is never run
	if err := os.WriteFile(none, []byte("no agent"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := msbtest.NewServer(m, serverKey)
	httpd := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		httpd.CloseClientConnections()
		httpd.Close()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, m, microsandbox.Config{
		Dir: providertest.Dir(t), Transport: "rpc", ServerURL: httpd.URL, APIKey: key(t, "tests"), Namespace: "tests", Agent: none,
	}
}

// closed ends a provider with the test.
func closed(t *testing.T, p *microsandbox.Provider) *microsandbox.Provider {
	t.Helper()
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func spec() cove.Spec {
	return cove.Spec{Template: "base", Workspace: cove.Workspace{Kind: cove.WorkspaceMemory}, Network: cove.Network{Mode: cove.NetworkOpen}}
}

// nothingLeft demands that no machine and no note is left.
func nothingLeft(t *testing.T, m *msbtest.Machines, dir string) {
	t.Helper()
	if left := m.Names(); len(left) > 0 {
		t.Errorf("machines are left: %v", left)
	}
	notes, err := filepath.Glob(filepath.Join(dir, "*.json*"))
	if err != nil || len(notes) > 0 {
		t.Errorf("notes are left: %v, %v", notes, err)
	}
}

// TestProbeRefusals is what a wrong setting, or what stands in the server's place,
// looks like: never ready, never an error, and always with what to do.
func TestProbeRefusals(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nobody reads
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	other, err := msbtest.Keygen("another server's key", "tests", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	expired, err := msbtest.Keygen(serverKey, "tests", time.Now().Add(-2*time.Hour), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		quirks      msbtest.Quirks
		change      func(*microsandbox.Config)
		why, remedy string
	}{
		"no server":               {change: func(c *microsandbox.Config) { c.ServerURL = "http://127.0.0.1:1" }, why: "cannot be reached", remedy: "MSB_SERVER_URL"},
		"accepts, never answers":  {change: func(c *microsandbox.Config) { c.ServerURL = "http://" + silent.Addr().String() }, why: "does not answer", remedy: "restart it"},
		"takes, never answers":    {quirks: msbtest.Quirks{Hang: true}, why: "does not answer", remedy: "restart it"},
		"healthy, never answers":  {quirks: msbtest.Quirks{HangRPC: true}, why: "does not answer", remedy: "restart it"},
		"HTML":                    {quirks: msbtest.Quirks{HTML: true}, why: "is not a microsandbox server", remedy: "MSB_SERVER_URL"},
		"another protocol":        {quirks: msbtest.Quirks{NoMethods: true}, why: "version 0.1 or 0.2", remedy: "MSB_TRANSPORT=cli"},
		"another answer":          {quirks: msbtest.Quirks{OtherID: true}, why: "another question"},
		"no key":                  {change: func(c *microsandbox.Config) { c.APIKey = "" }, why: "wants a key", remedy: "MSB_API_KEY"},
		"a key that is none":      {change: func(c *microsandbox.Config) { c.APIKey = "secret-without-prefix" }, why: "wants a key", remedy: "MSB_API_KEY"},
		"wrong key":               {change: func(c *microsandbox.Config) { c.APIKey = other }, why: "does not accept the key", remedy: "keygen"},
		"expired key":             {change: func(c *microsandbox.Config) { c.APIKey = expired }, why: "does not accept the key", remedy: "keygen"},
		"namespace not allowed":   {change: func(c *microsandbox.Config) { c.Namespace = "others" }, why: "not for the namespace", remedy: "MSB_NAMESPACE"},
		"namespace that is none":  {change: func(c *microsandbox.Config) { c.Namespace, c.APIKey = "no name", key(t, "*") }, why: "refused", remedy: "MSB_NAMESPACE"},
		"address that is none":    {change: func(c *microsandbox.Config) { c.ServerURL = "http://[::1" }, why: "not an address"},
		"agent that is not there": {change: func(c *microsandbox.Config) { c.Agent = "/no/such/agent" }, why: "agent", remedy: "make build"},
		"no agent in this build":  {change: func(c *microsandbox.Config) { c.Agent = "" }, why: "no agent", remedy: "make build"},
	} {
		t.Run(name, func(t *testing.T) {
			server, machines, cfg := rehearsal(t)
			server.Set(tc.quirks)
			if strings.HasSuffix(name, "never answers") {
				t.Cleanup(microsandbox.Hurry())
			}
			if tc.change != nil {
				tc.change(&cfg)
			}
			p := closed(t, opened(t, cfg))
			caps, err := p.Probe(t.Context())
			if err != nil || caps.Ready {
				t.Fatalf("Probe gives %+v, %v", caps, err)
			}
			if !strings.Contains(caps.Why, tc.why) || !strings.Contains(caps.Remedy, tc.remedy) {
				t.Errorf("why %q, remedy %q; want %q and %q", caps.Why, caps.Remedy, tc.why, tc.remedy)
			}
			if cfg.APIKey != "" && strings.Contains(caps.Why+caps.Remedy, cfg.APIKey) {
				t.Errorf("the key is shown: %q %q", caps.Why, caps.Remedy)
			}
			nothingLeft(t, machines, cfg.Dir)
		})
	}
}

func TestProbeGivesUpWithItsCaller(t *testing.T) {
	server, _, cfg := rehearsal(t)
	server.Set(msbtest.Quirks{Hang: true})
	p := closed(t, opened(t, cfg))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Probe(ctx); cove.CodeOf(err) != cove.Timeout {
		t.Errorf("Probe gives %v; want that the deadline passed", err)
	}
}

// TestCreateFaults is what goes wrong while a machine is made.
func TestCreateFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		quirks       msbtest.Quirks
		timeout      time.Duration
		code         cove.Code
		text, remedy string
	}{
		"start fails": {quirks: msbtest.Quirks{StartFails: true}, code: cove.Unavailable, text: "does not say why", remedy: "log"},
		"timed out waiting, for good": {
			quirks:  msbtest.Quirks{StartText: "Sandbox s was started, but timed out waiting for it to be fully running. It may still be initializing.", Slow: 1 << 20},
			timeout: 500 * time.Millisecond, code: cove.Timeout, text: "did not come up in time", remedy: "MSB_SANDBOX_START_TIMEOUT",
		},
		"no answer to a start, for good": {quirks: msbtest.Quirks{StartHangs: true, Slow: 1 << 20}, timeout: 400 * time.Millisecond, code: cove.Timeout, text: "did not come up in time"},
		"a server that hangs":            {quirks: msbtest.Quirks{Hang: true}, timeout: 300 * time.Millisecond, code: cove.Unavailable, text: "does not answer"},
		"programs print nonsense":        {quirks: msbtest.Quirks{Nonsense: `"this is no result"`}, code: cove.Unavailable, text: "is not a microsandbox server"},
		"programs have no end":           {quirks: msbtest.Quirks{Nonsense: `{"output":[]}`}, code: cove.Unavailable},
		"a page comes in between":        {quirks: msbtest.Quirks{HTML: true}, code: cove.Unavailable, text: "is not a microsandbox server"},
		"an image without tools":         {code: cove.Unavailable, text: "cannot be put into the machine", remedy: "MSB_IMAGE"},
	} {
		t.Run(name, func(t *testing.T) {
			server, machines, cfg := rehearsal(t)
			if cfg.StartTimeout = tc.timeout; tc.timeout == 0 {
				cfg.StartTimeout = time.Minute
			}
			p := closed(t, opened(t, cfg))
			if caps, err := p.Probe(t.Context()); err != nil || !caps.Ready {
				t.Fatalf("Probe gives %+v, %v", caps, err)
			}
			if tc.quirks.Hang {
				defer microsandbox.Hurry()()
			}
			server.Set(tc.quirks)
			id := cove.NewID()
			_, err := p.Create(t.Context(), id, spec())
			if cove.CodeOf(err) != tc.code || !strings.Contains(cove.MessageOf(err), tc.text) || !strings.Contains(cove.RemedyOf(err), tc.remedy) {
				t.Errorf("Create gives %v, remedy %q; want %s, %q and %q", err, cove.RemedyOf(err), tc.code, tc.text, tc.remedy)
			}
			if n := server.Asked("sandbox.start"); n > 1 {
				t.Errorf("the start was asked for %d times", n)
			}
			if strings.Contains(err.Error(), cfg.APIKey) {
				t.Errorf("the key is in the error: %v", err)
			}
			server.Set(msbtest.Quirks{})
			if err := p.Remove(t.Context(), id); err != nil { // what could not be ended is told of, and can be ended later
				t.Errorf("remove: %v", err)
			}
			nothingLeft(t, machines, cfg.Dir)
		})
	}
}

// runs demands that a program works.
func runs(t *testing.T, s cove.Sandbox, script, want string) {
	t.Helper()
	var out bytes.Buffer
	p, err := s.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	r, err := p.Wait(t.Context())
	if err != nil || r.ExitCode != 0 || out.String() != want {
		t.Errorf("%s gives %+v, %v and prints %q; want %q", script, r, err, out.String(), want)
	}
}

// TestStartThatTimedOut is a start of which the server cannot say that it went well.
func TestStartThatTimedOut(t *testing.T) {
	for name, tc := range map[string]struct {
		quirks msbtest.Quirks
		hurry  bool
	}{
		"timed out waiting": {quirks: msbtest.Quirks{StartText: "Sandbox s was started, but timed out waiting for it to be fully running. It may still be initializing.", Slow: 3}},
		"couldn't verify":   {quirks: msbtest.Quirks{StartText: "Sandbox s was started, but couldn't verify it's running: no", Slow: 1}},
		"no answer at all":  {quirks: msbtest.Quirks{StartHangs: true}, hurry: true},
	} {
		t.Run(name, func(t *testing.T) {
			th := stage(t)
			cfg := rpcConfig(t, th)
			if tc.hurry {
				defer microsandbox.HurryStart()()
			}
			p := closed(t, opened(t, cfg))
			th.server.Set(tc.quirks)
			s, err := p.Create(t.Context(), cove.NewID(), spec())
			if err != nil {
				t.Fatal(err)
			}
			runs(t, s, "echo up", "up\n")
			if n := th.server.Asked("sandbox.start"); n != 1 {
				t.Errorf("the start was asked for %d times", n)
			}
			if err := s.Destroy(t.Context()); err != nil {
				t.Error(err)
			}
			nothingLeft(t, th.machines, cfg.Dir)
		})
	}
}

// TestQuirks is a server that loses lines, damages them and fails now and then:
// programs run once all the same, and nothing of what they write is missing.
func TestQuirks(t *testing.T) {
	for name, q := range map[string]msbtest.Quirks{
		"lines are lost":    {DropLines: 3},
		"lines are damaged": {CutLines: 3},
		"programs fail":     {Refuse: 4},
		"all of it":         {DropLines: 5, CutLines: 7, Refuse: 11},
	} {
		t.Run(name, func(t *testing.T) {
			th := stage(t)
			cfg := rpcConfig(t, th)
			p := closed(t, opened(t, cfg))
			th.server.Set(q)
			s, err := p.Create(t.Context(), cove.NewID(), spec())
			if err != nil {
				t.Fatal(err)
			}
			var want strings.Builder
			for i := range 2000 {
				fmt.Fprintf(&want, "line %d\n", i)
			}
			runs(t, s, `echo ran >> log; i=0; while [ $i -lt 2000 ]; do echo "line $i"; i=$((i+1)); done; printf 'no newline \377'`, want.String()+"no newline \xff")
			for range 5 {
				runs(t, s, "echo ran >> log; wc -l < log > count", "")
			}
			runs(t, s, "cat count", "6\n")
			if err := s.Destroy(t.Context()); err != nil {
				t.Error(err)
			}
			nothingLeft(t, th.machines, cfg.Dir)
		})
	}
}

// TestStops is a stop of which the server tells something else than it did.
func TestStops(t *testing.T) {
	th := stage(t)
	cfg := rpcConfig(t, th)
	p := closed(t, opened(t, cfg))
	s, err := p.Create(t.Context(), cove.NewID(), spec())
	if err != nil {
		t.Fatal(err)
	}
	th.server.Set(msbtest.Quirks{StopLies: true})
	if err := s.Destroy(t.Context()); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("a machine that runs on is %v", err)
	}
	th.server.Set(msbtest.Quirks{StopFails: true})
	if err := s.Destroy(t.Context()); err != nil {
		t.Errorf("a machine that is gone is %v", err)
	}
	nothingLeft(t, th.machines, cfg.Dir)
}

// removed ends the one machine there is behind the provider's back.
func removed(t *testing.T, m *msbtest.Machines) {
	t.Helper()
	for _, name := range m.Names() {
		if err := m.Remove(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRemovedBehindOurBack is a machine that somebody else ended.
func TestRemovedBehindOurBack(t *testing.T) {
	for name, config := range map[string]func(*testing.T, *theatre) microsandbox.Config{"rpc": rpcConfig, "cli": cliConfig} {
		t.Run(name, func(t *testing.T) {
			th := stage(t)
			cfg := config(t, th)
			p := closed(t, opened(t, cfg))
			s, err := p.Create(t.Context(), cove.NewID(), spec())
			if err != nil {
				t.Fatal(err)
			}
			proc, err := s.Start(t.Context(), cove.Command{Argv: []string{"sleep", "1000"}})
			if err != nil {
				t.Fatal(err)
			}
			removed(t, th.machines)
			if _, err := proc.Wait(t.Context()); cove.CodeOf(err) != cove.Unavailable && cove.CodeOf(err) != cove.NotFound {
				t.Errorf("the program ends with %v", err)
			}
			_, err = s.Start(t.Context(), cove.Command{Argv: []string{"true"}})
			if cove.CodeOf(err) != cove.NotFound || cove.ReasonOf(err) != cove.ReasonNodeLost || cove.RemedyOf(err) == "" {
				t.Errorf("Start gives %v, reason %q", err, cove.ReasonOf(err))
			}
			if err := s.Destroy(t.Context()); err != nil {
				t.Errorf("destroy: %v", err)
			}
			nothingLeft(t, th.machines, cfg.Dir)
		})
	}
}

// TestServerGoneInTheMiddle is a server that dies while a program runs, and comes
// back: the machine lives on, and so does its sandbox.
func TestServerGoneInTheMiddle(t *testing.T) {
	t.Cleanup(microsandbox.HurryMail())
	th := stage(t)
	cfg := rpcConfig(t, th)
	away := &switchable{handler: th.server}
	httpd := httptest.NewServer(away)
	defer httpd.Close()
	cfg.ServerURL = httpd.URL
	p := closed(t, opened(t, cfg))
	s, err := p.Create(t.Context(), cove.NewID(), spec())
	if err != nil {
		t.Fatal(err)
	}
	runs(t, s, "echo kept > file", "")
	proc, err := s.Start(t.Context(), cove.Command{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	away.set(true)
	httpd.CloseClientConnections()
	if _, err := proc.Wait(t.Context()); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("the program ends with %v", err)
	}
	if _, err := s.Start(t.Context(), cove.Command{Argv: []string{"true"}}); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("Start gives %v", err)
	}
	away.set(false)
	runs(t, s, "cat file; pgrep -u \"$(id -u)\" sleep || echo nothing runs", "kept\nnothing runs\n")
	if err := s.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, th.machines, cfg.Dir)
}

func TestSettings(t *testing.T) {
	if _, err := microsandbox.New(microsandbox.Config{}); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("no directory gives %v", err)
	}
	if _, err := microsandbox.New(microsandbox.Config{Dir: t.TempDir(), Transport: "pigeon"}); cove.CodeOf(err) != cove.Invalid || !strings.Contains(cove.MessageOf(err), "rpc or cli") {
		t.Errorf("an unknown transport gives %v", err)
	}
	dir := filepath.Join(t.TempDir(), "state")
	p := closed(t, opened(t, microsandbox.Config{Dir: dir}))
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opening the provider touched its directory: %v", err)
	}
	if err := p.Remove(t.Context(), cove.NewID()); err != nil {
		t.Errorf("removing what never was, with no server: %v", err)
	}
}
