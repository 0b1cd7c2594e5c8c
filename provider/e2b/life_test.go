//go:build linux

package e2b_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/e2b"
	"github.com/cove-sandbox/cove/provider/e2b/e2btest"
	"github.com/cove-sandbox/cove/provider/providertest"
)

func run(t *testing.T, s cove.Sandbox, script string) string {
	t.Helper()
	var out bytes.Buffer
	p, err := s.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A machine that ends behind our back is lost, and says so.
func TestAMachineThatEnds(t *testing.T) {
	s := cloud(t)
	box := made(t, open(t, s))
	p, err := box.Start(t.Context(), cove.Command{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(t.Context(), s.Machines()[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("the program that ran: %v", err)
	}
	select {
	case <-box.(cove.Mortal).Died():
	case <-t.Context().Done():
		t.Fatal("nobody says that it died")
	}
	if _, err := box.Files().Stat(t.Context(), "."); cove.CodeOf(err) != cove.NotFound || cove.ReasonOf(err) != cove.ReasonNodeLost {
		t.Errorf("after its end: %v", err)
	}
	if err := box.Destroy(t.Context()); err != nil {
		t.Errorf("destroy: %v", err)
	}
}

// A connection that breaks costs what ran, and nothing else.
func TestAConnectionThatBreaks(t *testing.T) {
	s := cloud(t)
	box := made(t, open(t, s))
	if err := box.Files().Write(t.Context(), "kept", strings.NewReader("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := box.Start(t.Context(), cove.Command{Argv: []string{"sleep", "4711"}})
	if err != nil {
		t.Fatal(err)
	}
	s.Hang()
	if _, err := p.Wait(t.Context()); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("the program that ran: %v", err)
	}
	if got := run(t, box, "cat kept; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 471[1]'"); got != "text0\n" {
		t.Errorf("afterwards there is %q", got)
	}
	select {
	case <-box.(cove.Mortal).Died():
		t.Error("it is said to have died")
	default:
	}
}

func TestMachinesAreRenewed(t *testing.T) {
	renewed := make(chan string, 64)
	var end atomic.Bool
	s := cloud(t, func(c *e2btest.Config) {
		c.First = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/timeout") {
				return false
			}
			if end.Load() {
				return says("", 404, inJSON, `{"code":404}`)(w, r)
			}
			select {
			case renewed <- r.URL.Path:
			default:
			}
			return false
		}
	})
	box := made(t, open(t, s, func(c *e2b.Config) { c.Timeout = 100 * time.Millisecond }))
	for range 3 {
		if got, want := <-renewed, "/sandboxes/"+s.Machines()[0]+"/timeout"; got != want {
			t.Errorf("%s was renewed, want %s", got, want)
		}
	}
	end.Store(true) // as if its time had been up all the same
	<-box.(cove.Mortal).Died()
}

func TestQuota(t *testing.T) {
	p := open(t, cloud(t), func(c *e2b.Config) { c.Most = 1 })
	first := made(t, p)
	_, err := p.Create(t.Context(), cove.NewID(), spec())
	if cove.CodeOf(err) != cove.Exhausted || cove.ReasonOf(err) != cove.ReasonCapacity || !strings.Contains(cove.RemedyOf(err), "E2B_MAX_SANDBOXES") {
		t.Errorf("one too many: %v", err)
	}
	if err := first.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	made(t, p)
}

func TestCost(t *testing.T) {
	s := cloud(t)
	box := made(t, open(t, s, func(c *e2b.Config) { c.CPUHour, c.MemoryHour = 0.05, 0.016 }))
	// The server's machines have two CPUs and half a gigabyte.
	got := box.(cove.Charger).Cost(30 * time.Minute)
	if want := 0.05*2/2 + 0.016/2/2; got == nil || got.Currency != "USD" || got.Amount < want-1e-9 || got.Amount > want+1e-9 {
		t.Errorf("half an hour costs %+v, want %v", got, want)
	}
	free := made(t, open(t, s, func(c *e2b.Config) { c.Dir = t.TempDir() }))
	if got := free.(cove.Charger).Cost(time.Hour); got != nil {
		t.Errorf("without prices it costs %+v", got)
	}
}

// A server that does not say that it closed the network may not have.
func TestANetworkThatNobodySpeaksOf(t *testing.T) {
	s := cloud(t, func(c *e2btest.Config) { c.Mute = true })
	p := open(t, s)
	if box := made(t, p); box.Isolation().Network != cove.Absent {
		t.Errorf("the network is said to be %q", box.Isolation().Network)
	}
	strict := spec()
	strict.Floors = []cove.Limit{cove.LimitNetwork}
	_, err := p.Create(t.Context(), cove.NewID(), strict)
	if cove.CodeOf(err) != cove.Unsupported || cove.ReasonOf(err) != cove.ReasonLimitNotEnforced || len(s.Machines()) != 1 {
		t.Errorf("%v, and there are %v", err, s.Machines())
	}
}

func TestOldServer(t *testing.T) {
	tier.Full(t, "TestConformance uses the present version of the API")
	providertest.Run(t, func(t *testing.T) cove.Provider {
		return at(t, cloud(t, func(c *e2btest.Config) { c.Old = true }))
	}, "lifecycle", "exec", "attach")
	s := cloud(t, func(c *e2btest.Config) { c.Old = true })
	p := open(t, s)
	made(t, p)
	made(t, p)
	asked := s.Asked()
	if n := len(slices.DeleteFunc(asked, func(a string) bool { return a != "POST /v2/sandboxes" })); n != 1 {
		t.Errorf("the second version was tried %d times, want once", n)
	}
}

// Two of us at one E2B have nothing to do with one another, and a list can be long.
func TestOwners(t *testing.T) {
	s := cloud(t, func(c *e2btest.Config) { c.Page = 2 })
	mine, other := open(t, s), open(t, s, func(c *e2b.Config) { c.Dir = t.TempDir() })
	var want []cove.ID
	for range 3 {
		want = append(want, made(t, mine).ID())
	}
	theirs := made(t, other).ID()
	var got []cove.ID
	for id, err := range mine.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, id)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the list has %v, want %v", got, want)
	}
	if err := mine.Remove(t.Context(), theirs); err != nil || len(s.Machines()) != 4 {
		t.Errorf("%v, and there are %v", err, s.Machines())
	}
}

// What has no record, as after a crash, is listed and can be removed.
func TestHalfMade(t *testing.T) {
	s := cloud(t)
	box := made(t, open(t, s))
	record := filepath.Join(providertest.Dir(t), "e2b", string(box.ID())+".json")
	if err := os.Remove(record); err != nil {
		t.Fatal(err)
	}
	again := open(t, s)
	found := false
	for id, err := range again.List(t.Context()) {
		found = err == nil && id == box.ID()
	}
	if _, err := again.Attach(t.Context(), box.ID()); !found || cove.CodeOf(err) != cove.NotFound {
		t.Errorf("found %v, attach %v", found, err)
	}
	if err := again.Remove(t.Context(), box.ID()); err != nil || len(s.Machines()) != 0 {
		t.Errorf("%v, and there are %v", err, s.Machines())
	}
}

// A record whose machine is gone is no sandbox any more.
func TestARecordWithoutAMachine(t *testing.T) {
	s := cloud(t)
	p := at(t, s)
	box, err := p.Create(t.Context(), cove.NewID(), spec())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := box.Usage(t.Context()); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("after Close: %v", err)
	}
	if err := s.Kill(context.Background(), s.Machines()[0]); err != nil {
		t.Fatal(err)
	}
	again := open(t, s)
	if _, err := again.Attach(t.Context(), box.ID()); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("attach: %v", err)
	}
	for id, err := range again.List(t.Context()) {
		t.Errorf("the list has %s, %v", id, err)
	}
}

func TestAddresses(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg       e2b.Config
		domain    string
		api, envd string
	}{
		"E2B's own":        {api: "https://api.e2b.app", envd: "https://sandbox.e2b.app"},
		"another region":   {cfg: e2b.Config{Domain: "eu.example.com"}, api: "https://api.eu.example.com", envd: "https://49983-i1.eu.example.com"},
		"what it says":     {domain: "us.example.com", api: "https://api.e2b.app", envd: "https://49983-i1.us.example.com"},
		"one port for all": {cfg: e2b.Config{APIURL: "http://h:1/", SandboxURL: "http://h:2/"}, domain: "us.example.com", api: "http://h:1", envd: "http://h:2"},
	} {
		if api, envd, err := e2b.At(tt.cfg, "i1", tt.domain); err != nil || api != tt.api || envd != tt.envd {
			t.Errorf("%s: %s and %s, %v", name, api, envd, err)
		}
	}
	for field, cfg := range map[string]e2b.Config{
		"E2B_API_URL": {APIURL: "ftp://x"}, "E2B_SANDBOX_URL": {SandboxURL: "nothing"}, "E2B_DOMAIN": {Domain: "a/b"},
	} {
		if _, err := e2b.New(cfg); cove.CodeOf(err) != cove.Invalid || !strings.HasPrefix(cove.MessageOf(err), field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestWhatItCannotBe(t *testing.T) {
	p := open(t, cloud(t))
	for field, change := range map[string]func(*cove.Spec){
		"snapshot": func(s *cove.Spec) { s.Snapshot = cove.NewID() },
		"volumes":  func(s *cove.Spec) { s.Volumes = []cove.Volume{{Source: "/srv", Target: "/data"}} },
		"network":  func(s *cove.Spec) { s.Network = cove.Network{Mode: cove.NetworkAllow, Allow: []string{"a.com"}} },
	} {
		s := spec()
		change(&s)
		if _, err := p.Create(t.Context(), cove.NewID(), s); cove.CodeOf(err) != cove.Unsupported || !strings.HasPrefix(cove.MessageOf(err), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
