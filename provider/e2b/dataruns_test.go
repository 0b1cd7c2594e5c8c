//go:build linux

package e2b_test

import (
	"testing"

	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/daemon/daemontest"
	"github.com/cove-sandbox/cove/platformtest/dataruns"
	"github.com/cove-sandbox/cove/provider/e2b/e2btest"
)

// TestDataRuns runs the acceptance list of data runs over a server that speaks E2B's
// protocol. Nothing can be mounted there: the data and DuckDB are uploaded.
func TestDataRuns(t *testing.T) {
	daemontest.NeedDuckDB(t)
	s := e2btest.New(e2btest.Config{Provider: machines(t), Key: "e2b_0"})
	t.Cleanup(func() {
		if left := s.Machines(); len(left) > 0 {
			t.Errorf("machines are left: %v", left)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	d := daemontest.Data{
		Provider: "e2b",
		Settings: map[string]string{"E2B_API_KEY": "e2b_0", "E2B_API_URL": s.URL(), "E2B_SANDBOX_URL": s.URL()},
		Parts:    daemon.Parts{Agent: agent(t)},
	}
	dataruns.Run(t, d.Open, "acceptance", "faults", "errors", "chat")
}
