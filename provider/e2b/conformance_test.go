//go:build linux

package e2b_test

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/e2b"
	"github.com/cove-sandbox/cove/provider/e2b/e2btest"
	"github.com/cove-sandbox/cove/provider/providertest"
)

const key = "e2b_0000000000000000000000000000000000000000"

var (
	cloudsMu sync.Mutex
	clouds   = map[*testing.T]*e2btest.Server{} // guarded by cloudsMu
)

// cloud is a server for the time of a test, in front of sandboxes of this machine:
// the same one whenever it is asked with the same t.
func cloud(t *testing.T, change ...func(*e2btest.Config)) *e2btest.Server {
	t.Helper()
	cloudsMu.Lock()
	defer cloudsMu.Unlock()
	if s := clouds[t]; s != nil {
		return s
	}
	cfg := e2btest.Config{Provider: machines(t), Key: key}
	for _, c := range change {
		c(&cfg)
	}
	s := e2btest.New(cfg)
	clouds[t] = s
	t.Cleanup(func() {
		cloudsMu.Lock()
		delete(clouds, t)
		cloudsMu.Unlock()
		if left := s.Machines(); len(left) > 0 && !t.Failed() {
			t.Errorf("machines are left: %v", left)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close the server: %v", err)
		}
	})
	return s
}

// at is a provider for a server.
func at(t *testing.T, s *e2btest.Server, change ...func(*e2b.Config)) *e2b.Provider {
	t.Helper()
	cfg := e2b.Config{Dir: filepath.Join(providertest.Dir(t), "e2b"), APIKey: key, APIURL: s.URL(), SandboxURL: s.URL(), Agent: program.Agent(t)}
	for _, c := range change {
		c(&cfg)
	}
	p, err := e2b.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestConformance(t *testing.T) {
	providertest.Run(t, func(t *testing.T) cove.Provider { return at(t, cloud(t)) },
		tier.Pick([]string{"lifecycle", "exec", "files", "attach"}, groups()...)...)
}

// groups are all but the attacks: machines of the tests are sandboxes of provider
// local, whose own tests run them.
func groups() []string {
	var names []string
	for _, c := range providertest.Cases() {
		name, _, _ := strings.Cut(c, "/")
		if name != "escape" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
