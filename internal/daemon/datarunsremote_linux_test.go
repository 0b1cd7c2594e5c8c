package daemon_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/daemon/daemontest"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/platformtest/dataruns"
	"github.com/cove-sandbox/cove/provider/e2b/e2btest"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/microsandbox/msbtest"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// TestDataRunsE2B runs the acceptance list of data runs over a server that speaks E2B's
// protocol. Nothing can be mounted there: the data and DuckDB are uploaded.
func TestDataRunsE2B(t *testing.T) {
	tier.Full(t, "TestDataRuns answers the same queries on local")
	daemontest.NeedDuckDB(t)
	machines, err := local.New(local.Config{Dir: t.TempDir(), Agent: daemontest.Agent(t)})
	if err != nil {
		t.Fatal(err)
	}
	providertest.Ready(t, machines)
	s := e2btest.New(e2btest.Config{Provider: machines, Key: "e2b_0"})
	t.Cleanup(func() {
		if left := s.Machines(); len(left) > 0 {
			t.Errorf("machines are left: %v", left)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := machines.Close(); err != nil {
			t.Error(err)
		}
	})
	d := daemontest.Data{
		Provider: "e2b",
		Settings: map[string]string{"E2B_API_KEY": "e2b_0", "E2B_API_URL": s.URL(), "E2B_SANDBOX_URL": s.URL()},
		Parts:    daemon.Parts{Agent: daemontest.Agent(t)},
	}
	dataruns.Run(t, d.Open, "acceptance", "faults", "errors", "chat")
}

// msbData are data runs over a server that plays microsandbox, until the test ends.
func msbData(t *testing.T, settings map[string]string) daemontest.Data {
	t.Helper()
	const serverKey = "0123456789abcdefghijABCDEFGHIJ01"
	machines := msbtest.NewMachines(msbtest.NewRooted(t), func(s msbtest.Size) cove.Spec {
		return cove.Spec{Resources: cove.Resources{Memory: s.Memory, CPUs: float64(s.CPUs)}}
	})
	server := msbtest.NewServer(machines, serverKey)
	httpd := httptest.NewServer(server)
	t.Cleanup(func() {
		server.Close()
		httpd.CloseClientConnections()
		httpd.Close()
		if left := machines.Names(); len(left) > 0 {
			t.Errorf("machines are left: %v", left)
		}
	})
	key, err := msbtest.Keygen(serverKey, "tests", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"MSB_TRANSPORT": "rpc", "MSB_SERVER_URL": httpd.URL, "MSB_API_KEY": key, "MSB_NAMESPACE": "tests"}
	for name, value := range settings {
		all[name] = value
	}
	return daemontest.Data{Provider: "microsandbox", Settings: all, Parts: daemon.Parts{Agent: daemontest.Agent(t)}}
}

// TestDataRunsMicrosandbox runs the acceptance list of data runs over a server that plays
// microsandbox. Nothing can be mounted there: the data and DuckDB go through the server
// in small pieces.
func TestDataRunsMicrosandbox(t *testing.T) {
	tier.Full(t, "TestDataRuns answers the same queries on local")
	daemontest.NeedDuckDB(t)
	d := msbData(t, map[string]string{"MSB_MEMORY_MB": "1024", "COVE_RUNS_NETWORK": "open"}) // the server cannot close it
	dataruns.Run(t, d.Open, "acceptance", "faults", "errors", "chat")
}

// TestDataRunsNeedAClosedNetwork wants no query to be answered where code that sees the
// data could reach a network, unless the operator allows it.
func TestDataRunsNeedAClosedNetwork(t *testing.T) {
	daemontest.NeedDuckDB(t)
	d := msbData(t, nil)
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
