package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/inprocess"
	"github.com/cove-sandbox/cove/provider/e2b/e2btest"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

func TestMain(m *testing.M) {
	inprocess.Main()
	os.Exit(m.Run())
}

// rungs are the settings of each provider beside its name; "" is left alone.
func rungs() map[string]map[string]string {
	return map[string]map[string]string{
		"local":  {},
		"gvisor": {"COVE_GVISOR_RUNSC": os.Getenv("COVE_TEST_RUNSC")},
		"docker": {"DOCKER_HOST": os.Getenv("COVE_TEST_DOCKER_HOST"), "DOCKER_IMAGE": os.Getenv("COVE_TEST_DOCKER_IMAGE")},
		"e2b":    {"E2B_API_KEY": "e2b_0"},
	}
}

// TestEveryRung runs the same program with nothing but settings changed. It is built
// as others would do it who have sandboxes with files of their own: static.
func TestEveryRung(t *testing.T) {
	program := filepath.Join(t.TempDir(), "ladder")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for name, settings := range rungs() {
		t.Run(name, func(t *testing.T) {
			if name == "e2b" {
				url := cloud(t, settings["E2B_API_KEY"])
				settings["E2B_API_URL"], settings["E2B_SANDBOX_URL"] = url, url
			}
			settle(t, settings)
			t.Setenv("SANDBOX_PROVIDER", name)
			var out, complaint bytes.Buffer
			cmd := exec.CommandContext(t.Context(), program)
			cmd.Stdout, cmd.Stderr = &out, &complaint
			err := cmd.Run()
			if err != nil && strings.Contains(complaint.String(), "provider "+name+" is not ready") {
				providertest.Require(t, name, cove.Capabilities{Why: strings.TrimSpace(complaint.String())})
			}
			first, rest, _ := strings.Cut(out.String(), "\n")
			if err != nil || !strings.HasPrefix(first, "served by "+name+", behind ") || rest != "3 lines were sorted\nthey are 1 2 3\nand 6 in all\n" {
				t.Errorf("%v: it printed\n%s%s", err, &out, &complaint)
			}
		})
	}
}

// TestFallback wants what is written, and nothing else, to serve where Docker is gone.
func TestFallback(t *testing.T) {
	settle(t, map[string]string{"DOCKER_HOST": "unix:///nowhere/docker.sock"})
	t.Setenv("SANDBOX_PROVIDER", "docker")
	out, err := climbed(t)
	if cove.CodeOf(err) != cove.Unavailable || !strings.Contains(cove.MessageOf(err), "Docker daemon not available") || cove.RemedyOf(err) == "" || out != "" {
		t.Errorf("%v, %q", err, out)
	}
	ready(t)
	t.Setenv("SANDBOX_FALLBACK", "local")
	if out, err = climbed(t); err != nil || !strings.HasPrefix(out, "served by local instead of docker, behind namespaces\n") || !strings.HasSuffix(out, "\nand 6 in all\n") {
		t.Errorf("%v, %q", err, out)
	}
}

// settle sets the settings of a test, each in a directory of its own.
func settle(t *testing.T, settings map[string]string) {
	t.Helper()
	t.Setenv("COVE_HOME", filepath.Join(t.TempDir(), "home"))
	t.Setenv("POOL_SIZE", "0")
	for k, v := range settings {
		if v != "" {
			t.Setenv(k, v)
		}
	}
}

func climbed(t *testing.T) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), &out)
	return out.String(), err
}

// ready skips the test where there are no sandboxes of this machine.
func ready(t *testing.T) *local.Provider {
	t.Helper()
	p, err := local.New(local.Config{Dir: filepath.Join(t.TempDir(), "local")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	providertest.Ready(t, p)
	return p
}

// cloud is a server that speaks E2B's protocol, in front of sandboxes of this
// machine.
func cloud(t *testing.T, key string) (url string) {
	t.Helper()
	p := ready(t)
	s := e2btest.New(e2btest.Config{Provider: p, Key: key})
	t.Cleanup(func() {
		if left := s.Machines(); len(left) > 0 {
			t.Errorf("machines are left: %v", left)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.URL()
}
