package cove_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/provider/providertest"
)

// composeNode is a server in a compose file.
type composeNode struct {
	Build       map[string]string
	Image       string
	User        string
	Init        bool
	CapDrop     []string `yaml:"cap_drop"`
	CapAdd      []string `yaml:"cap_add"`
	SecurityOpt []string `yaml:"security_opt"`
	Cgroup      string
	StopGrace   string `yaml:"stop_grace_period"`
	Restart     string
}

// composePlace is what differs from node to node.
type composePlace struct {
	Environment map[string]string
	Volumes     []string
	Ports       []string
	Networks    []string
}

func readCompose[T any](t *testing.T, name string) map[string]T {
	t.Helper()
	var file struct{ Services map[string]T }
	if err := yaml.Unmarshal([]byte(readFile(t, name)), &file); err != nil {
		t.Fatal(err)
	}
	return file.Services
}

// TestComposeCluster holds the compose file of a cluster against that of one server,
// against the settings there are, and against the proxy's configuration.
func TestComposeCluster(t *testing.T) {
	const name = "deploy/compose.cluster.yaml"
	one := readCompose[composeNode](t, "deploy/compose.yaml")["cove"]
	all, places := readCompose[composeNode](t, name), readCompose[composePlace](t, name)
	proxy, known := readFile(t, "deploy/haproxy.cfg"), readFile(t, ".env.example")
	nodes := []string{"n1", "n2", "n3"}
	for i, node := range nodes {
		if diff := cmp.Diff(one, all[node]); diff != "" {
			t.Errorf("%s is not as the server in compose.yaml (-one +node):\n%s", node, diff)
		}
		place := places[node]
		for setting, value := range place.Environment {
			if !strings.Contains(known, setting+"=") {
				t.Errorf("%s has %s, which is no setting", node, setting)
			}
			if slices.Contains([]string{"REDIS_URL", "COVE_CLUSTER_SECRET"}, setting) && !strings.Contains(value, ":?set it in deploy/.env") {
				t.Errorf("%s of %s is not asked for where it is missing: %s", setting, node, value)
			}
		}
		if place.Environment["COVE_NODE_ID"] != node || place.Environment["COVE_NODE_ADDR"] != node+":7070" || place.Environment["COVE_HOME"] != "/data/"+node {
			t.Errorf("%s is %v", node, place.Environment)
		}
		if !slices.Contains(place.Volumes, node+":/data") || !slices.Contains(place.Volumes, "users:/run/cove") || len(place.Ports) > 0 {
			t.Errorf("%s has the volumes %q and the ports %q", node, place.Volumes, place.Ports)
		}
		if !strings.Contains(proxy, fmt.Sprintf("server %s \"${COVE_NODE_%d-%s:8000}\"", node, i+1, node)) {
			t.Errorf("the proxy does not know %s", node)
		}
	}
	for service, place := range places {
		if slices.Contains(place.Networks, "front") != (service == "front") || (len(place.Ports) > 0) != (service == "front") {
			t.Errorf("%s is in %q and open at %q", service, place.Networks, place.Ports)
		}
	}
	if diff := cmp.Diff([]string{"127.0.0.1:8000:8000"}, places["front"].Ports); diff != "" {
		t.Error(diff)
	}
	for _, v := range places["front"].Volumes {
		from, _, _ := strings.Cut(v, ":")
		readFile(t, filepath.Join("deploy", from))
	}
}

// TestProxyVerifies asks HAProxy itself, where it is, about addresses as
// scripts/cluster.sh names them.
func TestProxyVerifies(t *testing.T) {
	program, err := exec.LookPath("haproxy")
	if err != nil {
		if program = "/usr/sbin/haproxy"; !exists(program) {
			providertest.Lacks(t, "cluster", "haproxy is not installed")
		}
	}
	cmd := exec.CommandContext(t.Context(), program, "-c", "-f", "deploy/haproxy.cfg")
	cmd.Env = []string{"COVE_FRONT=127.0.0.1:8000", "COVE_NODE_1=127.0.0.1:8001", "COVE_NODE_2=127.0.0.1:8002", "COVE_NODE_3=127.0.0.1:8003"}
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "WARNING") {
		t.Errorf("%v\n%s", err, out)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
