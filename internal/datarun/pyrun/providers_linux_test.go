//go:build linux

package pyrun_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/datarun/pyrun"
	"github.com/cove-sandbox/cove/internal/kernel"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/alltest"
)

// TestProviders: the same question has the same answer in every sandbox, and one that
// takes too much time or memory leaves the sandbox as it was.
func TestProviders(t *testing.T) {
	tier.Full(t, "internal/daemon runs Python queries on local")
	newHost(t) // which has pandas
	alltest.Each(t, runInside)
}

func runInside(t *testing.T, p cove.Provider) {
	t.Helper()
	const memory = 512 * cove.MiB
	s := alltest.Sandbox(t, p, memory)
	if err := s.Files().Write(t.Context(), "/workspace/orders.csv", strings.NewReader(orders), 0o644); err != nil {
		t.Fatal(err)
	}
	kernels := kernel.New()
	for _, c := range []struct{ name, code, want string }{
		{"a question", "import pandas as pd\nprint(len(dfs))\norders.groupby('status', as_index=False)['id'].count()", `success  [["open",1] ["paid",2]]`},
		{"too long", "while True: pass", "timeout RUNNER_TIMEOUT: the run took longer than 3s []"},
		{"too much", "x = []\nwhile True: x.append(np.ones(10_000_000))", "error PYTHON_EXECUTION_ERROR: the code needs more than the 512 MB of memory that this session has []"},
		{"the next", "len(orders)", "success  [[3]]"},
	} {
		timeout := time.Minute
		if c.name == "too long" {
			timeout = 3 * time.Second
		}
		r, err := pyrun.Run(t.Context(), kernels, s, pyrun.Question{
			Code: c.code, Timeout: timeout, MaxRows: 10, MaxOutput: 4 << 10, Memory: memory,
			Tables: []pyrun.Table{{Name: "orders", Path: "/workspace/orders.csv", Format: pyrun.CSV}},
		})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := summary(r.Answer); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func summary(a *cove.RunAnswer) string {
	problem := ""
	if a.Error != nil {
		problem = a.Error.Type + ": " + a.Error.Message
	}
	var rows []string
	for _, r := range a.Rows {
		rows = append(rows, string(r))
	}
	return a.Status + " " + problem + " [" + strings.Join(rows, " ") + "]"
}
