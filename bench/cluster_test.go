package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/provider/providertest"
)

// twoNodes is little of everything that is measured of two nodes.
func twoNodes(t *testing.T) clusterOptions {
	t.Helper()
	const redis = "redis-server"
	if _, err := exec.LookPath(redis); err != nil {
		providertest.Lacks(t, "redis", "there is no "+redis+" in the PATH; scripts/setup.sh test installs it")
	}
	o := clusterOptions{restartOptions: little(t).restartOptions, redis: redis, rounds: 2, creates: 2, execs: 20, each: 2}
	o.env = append(o.env, shortLease) // where there was none before, a node waits for half of it
	return o
}

// TestClusterRows proves that everything is measured, on a pretend provider. Times are
// not looked at; that what must not ask Redis does not is no matter of time.
func TestClusterRows(t *testing.T) {
	rows, counts, err := clusterRows(t.Context(), twoNodes(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 || rows[2].value != 0 {
		t.Errorf("%+v", rows)
	}
	for _, r := range rows {
		if r.name == "" || r.measured == "" || r.baseline == "" || strings.HasPrefix(r.baseline, "0.00") {
			t.Errorf("%+v lacks something", r)
		}
	}
	asks := map[string]bool{}
	for _, c := range counts {
		if asks[c.what] = c.commands[0] > 0; len(c.commands) != 2 {
			t.Errorf("%+v", c)
		}
	}
	if !asks["create, on the node itself"] || !asks["first exec through another node"] || asks["later exec through another node"] {
		t.Errorf("commands are not counted: %+v", counts)
	}
}

func TestClusterRowsSayWhatIsWrong(t *testing.T) {
	o := twoNodes(t)
	o.cove = "/nowhere"
	if _, _, err := clusterRows(t.Context(), o); err == nil {
		t.Error("there is no server")
	}
	o.redis = "false"
	if _, _, err := clusterRows(t.Context(), o); err == nil || !strings.Contains(err.Error(), "false does not start: it has ended") {
		t.Errorf("a Redis that ends: %v", err)
	}
	o.redis = "/nowhere/redis-server"
	if text, rows, err := clusterPart(t.Context(), options{cluster: o}); err != nil || len(rows) != 0 || !strings.Contains(text, "was not measured") {
		t.Errorf("%q, %v, %v", text, rows, err)
	}
	if _, _, err := clusterPart(t.Context(), options{cluster: o, only: partCluster}); err == nil {
		t.Error("there is no Redis, and nothing else was to be measured")
	}
}

// Only what clients send counts: not what scripts do in Redis, nor signs of life.
func TestCommandsAreCounted(t *testing.T) {
	o := twoNodes(t)
	r, err := startRedis(t.Context(), o.redis, t.TempDir(), o.patience)
	if err != nil {
		t.Fatal(err)
	}
	defer r.stop()
	n, err := r.during(t.Context(), func() error {
		_, err := r.info(t.Context())
		return err
	})
	if err != nil || len(n) != 1 || n[0] != "INFO server" {
		t.Errorf("%q, %v", n, err)
	}
	broken := errors.New("broken")
	if _, err := r.during(t.Context(), func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("what failed: %v", err)
	}
	for line, want := range map[string]string{
		`+1.0 [0 127.0.0.1:1] "evalsha" "ab" "[0 lua] b"`: "evalsha ab",
		`+1.0 [0 unix:/run/s] "HGET" "a" "] b"`:           "HGET a",
		`+1.0 [0 127.0.0.1:1] "dbsize"`:                   "dbsize",
		`+1.0 [0 lua] "HGET" "a"`:                         "",
		`+1.0 [0 127.0.0.1:1] "ping"`:                     "",
		`+OK`:                                             "",
	} {
		if got := sent(line); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
	if r := noneRow(9, n); r.ok() || r.measured != "1 commands, such as INFO server" {
		t.Errorf("%+v", r)
	}
	if rendered := renderCounts([]count{{"call", []int{3, 1, 2}}, {what: "never"}}); !strings.Contains(rendered, "| call | 2 | 1 | 3 | 3 |") || strings.Contains(rendered, "never") {
		t.Error(rendered)
	}
}
