package cove_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

// TestServerInAContainer tries what docs/operations.md says about sandboxes in a
// container, in the three kinds of container of its table.
func TestServerInAContainer(t *testing.T) {
	host := os.Getenv("COVE_TEST_DOCKER_HOST")
	if !strings.HasPrefix(host, "unix://") {
		t.Skip("COVE_TEST_DOCKER_HOST names no engine on this machine")
	}
	executable := program.Cove(t)
	open := []string{"--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined", "--security-opt", "systempaths=unconfined"}
	for name, c := range map[string]struct {
		options []string
		ready   bool
		memory  cove.Enforcement
	}{
		"as compose.yaml says": {options: composed(t), ready: true, memory: cove.Hard},
		"an ordinary user":     {options: append([]string{"--user", "10001", "--tmpfs", "/data:mode=1777"}, open...), ready: true, memory: cove.Absent},
		"the usual container":  {options: []string{"--user", "10001", "--tmpfs", "/data:mode=1777"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.ready && c.memory == cove.Absent {
				tier.Full(t, "the tests of provider/local have an ordinary user, too")
			}
			cmd := func(program ...string) (string, error) {
				return try(t, slices.Concat([]string{
					"docker", "--host", host, "run", "--rm", "--network", "none", "--env", "COVE_HOME=/data/cove", "--env", "HOME=/data",
					"--volume", executable + ":/usr/local/bin/cove:ro",
				}, c.options, []string{"cove-sandbox:test"}, program)...)
			}
			out, err := cmd("cove", "doctor", "--json")
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			local := doctored(t, out)
			if local.Ready != c.ready || c.ready && local.Isolation.Memory != c.memory {
				t.Errorf("ready %t, memory %s; want %t, %s (%s)", local.Ready, local.Isolation.Memory, c.ready, c.memory, local.Why)
			}
			out, err = cmd("cove", "run", "--", "sh", "-c", "echo it runs")
			if (err == nil && out == "it runs\n") != c.ready {
				t.Errorf("cove run: %v\n%s", err, out)
			}
		})
	}
}

// doctored finds the local provider in what cove doctor says.
func doctored(t *testing.T, out string) cove.Capabilities {
	t.Helper()
	for line := range strings.Lines(out) {
		var report struct {
			Name         string
			Capabilities cove.Capabilities
		}
		if json.Unmarshal([]byte(line), &report) == nil && report.Name == "local" {
			return report.Capabilities
		}
	}
	t.Fatalf("cove doctor does not know local:\n%s", out)
	return cove.Capabilities{}
}

// composed are the rights of the server in deploy/compose.yaml, as options of
// docker run.
func composed(t *testing.T) []string {
	t.Helper()
	var file struct {
		Services map[string]struct {
			User        string
			CapDrop     []string `yaml:"cap_drop"`
			CapAdd      []string `yaml:"cap_add"`
			SecurityOpt []string `yaml:"security_opt"`
			Cgroup      string
			Volumes     []string
			Tmpfs       []string
		}
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "deploy/compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	s := file.Services["cove"]
	options := []string{"--user", s.User, "--cgroupns", s.Cgroup, "--init"}
	for flag, values := range map[string][]string{"--cap-drop": s.CapDrop, "--cap-add": s.CapAdd, "--security-opt": s.SecurityOpt, "--tmpfs": s.Tmpfs} {
		for _, v := range values {
			options = append(options, flag, v)
		}
	}
	for _, v := range s.Volumes {
		options = append(options, "--volume", strings.TrimPrefix(v, "home:")) // one that ends with the container
	}
	return options
}
