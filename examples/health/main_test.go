package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/inprocess"
	"github.com/cove-sandbox/cove/internal/daemon/daemontest"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

func TestMain(m *testing.M) {
	inprocess.Main() // the server of the tests makes sandboxes
	os.Exit(m.Run())
}

// serve runs a server with room for one session and returns its URL and key.
func serve(t *testing.T, provider string) (url, key string) {
	t.Helper()
	at, key := daemontest.Serve(t, map[string]string{
		"SANDBOX_PROVIDER": provider, "POOL_SIZE": "0", "MSB_MAX_SESSIONS": "1", "MSB_ENABLE_LRU_EVICTION": "false",
	})
	return at.URL, key
}

const healthy = `ok    the server answers
ok    a sandbox is made
ok    a program runs
ok    a file is kept
ok    the sandbox ends
`

func TestHealthy(t *testing.T) {
	for _, provider := range []string{"fake", "local"} {
		t.Run(provider, func(t *testing.T) {
			if provider == "local" {
				l, err := local.New(local.Config{Dir: providertest.Dir(t)})
				if err != nil {
					t.Fatal(err)
				}
				providertest.Ready(t, l)
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
			url, key := serve(t, provider)
			for range 2 { // the first leaves room for the second
				var out strings.Builder
				if ok := run(t.Context(), url, key, &out); !ok || out.String() != healthy {
					t.Errorf("%v (-want +got):\n%s", ok, cmp.Diff(healthy, out.String()))
				}
			}
		})
	}
}

func TestUnhealthy(t *testing.T) {
	url, key := serve(t, "fake")
	said := func(url, key string, want ...string) {
		t.Helper()
		var out strings.Builder
		if run(t.Context(), url, key, &out) {
			t.Errorf("healthy:\n%s", out.String())
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%q is not in:\n%s", w, out.String())
			}
		}
	}
	said("nonsense", key, "unhealthy: ")
	said(url, "cove_wrong", "FAIL  the server answers", "(unauthenticated)")
	said("http://127.0.0.1:1", key, "FAIL  the server answers", "(unavailable)", "cove serve")

	c, err := client.New(url, key)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Sessions().Open(t.Context(), cove.OpenRequest{}); err != nil {
		t.Fatal(err)
	}
	said(url, key, "ok    the server answers", "FAIL  a sandbox is made", "(exhausted)")
}

// odd is a platform whose programs print something else.
type odd struct{ cove.Platform }

func (o odd) Processes(cove.ID) cove.Processes { return oddProcesses{} }

type oddProcesses struct{ cove.Processes }

func (oddProcesses) Exec(context.Context, cove.ExecRequest) (*cove.Execution, error) {
	return &cove.Execution{Result: cove.Result{Outcome: cove.Exited}, Stdout: cove.Output{Data: []byte("dead\n")}}, nil
}

// TestAnOddServer: what answers and does not do what it is asked is not healthy,
// and the sandbox is ended all the same.
func TestAnOddServer(t *testing.T) {
	p, err := inprocess.Open(t.Context(), inprocess.Config{
		Home: filepath.Join(t.TempDir(), "home"), Provider: "fake", Settings: map[string]string{"POOL_SIZE": "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	var names []string
	for _, s := range Check(t.Context(), odd{p}) {
		if s.Err != nil && !errors.Is(s.Err, cove.Internal) {
			t.Errorf("%s: %v", s.Name, s.Err)
		}
		names = append(names, s.String()[:4]+s.Name)
	}
	want := []string{"ok  the server answers", "ok  a sandbox is made", "FAILa program runs", "ok  the sandbox ends"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	for s, err := range p.Sessions().List(t.Context(), cove.SessionFilter{}) {
		t.Errorf("left: %+v, %v", s, err)
	}
}
