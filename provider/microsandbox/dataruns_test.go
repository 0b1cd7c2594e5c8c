//go:build linux

package microsandbox_test

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/daemon/daemontest"
	"github.com/cove-sandbox/cove/platformtest/dataruns"
)

// TestDataRuns runs the acceptance list of data runs over a server that plays
// microsandbox. Nothing can be mounted there: the data and DuckDB go through the
// server in small pieces.
func TestDataRuns(t *testing.T) {
	daemontest.NeedDuckDB(t)
	th := stage(t)
	d := daemontest.Data{
		Provider: "microsandbox",
		Settings: map[string]string{
			"MSB_TRANSPORT": "rpc", "MSB_SERVER_URL": th.url, "MSB_API_KEY": key(t, "tests"), "MSB_NAMESPACE": "tests", "MSB_MEMORY_MB": "1024",
			"COVE_RUNS_NETWORK": "open", // the server cannot close it
		},
		Parts: daemon.Parts{Agent: agent(t)},
	}
	dataruns.Run(t, d.Open, "acceptance", "faults", "errors", "chat")
}

// TestDataRunsNeedAClosedNetwork wants no question to be answered where what sees the
// data could reach anybody, unless the operator says so.
func TestDataRunsNeedAClosedNetwork(t *testing.T) {
	daemontest.NeedDuckDB(t)
	th := stage(t)
	d := daemontest.Data{
		Provider: "microsandbox",
		Settings: map[string]string{"MSB_TRANSPORT": "rpc", "MSB_SERVER_URL": th.url, "MSB_API_KEY": key(t, "tests"), "MSB_NAMESPACE": "tests"},
		Parts:    daemon.Parts{Agent: agent(t)},
	}
	h := d.Open(t, dataruns.Setup{})
	defer h.Close()
	runs := h.As(cove.Principal{Name: "analyst", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeRuns}}).Runs()
	run, err := runs.Submit(t.Context(), cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 1"})
	if err == nil {
		run, err = runs.Wait(t.Context(), run.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	if e := run.Answer.Error; e == nil || e.Type != cove.RunUnavailable || !strings.Contains(e.Message, "cannot give network") {
		t.Errorf("the answer is %+v", run.Answer)
	}
}
