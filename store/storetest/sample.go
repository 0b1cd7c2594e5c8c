package storetest

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// epoch is the time of all samples: with nanoseconds, and not in UTC.
var epoch = time.Date(2031, 2, 3, 4, 5, 6, 123456789, time.FixedZone("", 2*3600))

// session is a small record that nothing distinguishes but its id.
func session(id cove.ID, change ...func(*cove.Session)) *cove.Session {
	s := &cove.Session{ID: id, Tenant: "acme", State: cove.Running, CreatedAt: epoch}
	for _, c := range change {
		c(s)
	}
	return s
}

// held makes a session one that holds a (user, thread).
func held(user, thread string) func(*cove.Session) {
	return func(s *cove.Session) { s.Spec.User, s.Spec.Thread = user, thread }
}

func inState(state cove.State) func(*cove.Session) {
	return func(s *cove.Session) { s.State = state }
}

func onNode(node string) func(*cove.Session) {
	return func(s *cove.Session) { s.Node = node }
}

func fullSpec() cove.Spec {
	return cove.Spec{
		Provider: "local", Template: "python", Flavor: "small", Project: "apollo", User: "ann", Thread: "t-1",
		Resources: cove.Resources{CPUs: 1.5, Memory: cove.GiB, PIDs: 64},
		Network:   cove.Network{Mode: cove.NetworkAllow, Allow: []string{"pypi.org"}, Secrets: []string{"token"}},
		Workspace: cove.Workspace{Kind: cove.WorkspaceMemory, Size: 64 * cove.MiB, Files: 1000, Moves: true},
		Volumes:   []cove.Volume{{Source: "/srv/data", Target: "/data", Write: true}, {Name: "data", Target: "/shared"}},
		Env:       map[string]string{"A": "1", "B": "<&>\u2028\""},
		Policy:    "agent-bash",
		Require:   cove.Require{Isolation: cove.BoundaryNamespaces},
		Metadata:  map[string]string{"team": "blue", "tier": "gold"},
		Ports:     []int{8080, 9090},
		Snapshot:  cove.NewID(),
		Idle:      time.Hour, Lifetime: 24*time.Hour + time.Nanosecond,
		FixedEnd: true, OnEnd: cove.EndPause, Wake: true, PublicPorts: true,
		Floors:   []cove.Limit{cove.LimitMemory},
		EnvNames: []string{"A", "B"},
	}
}

func fullSession(id cove.ID) *cove.Session {
	return &cove.Session{
		ID: id, Tenant: "acme", Owner: "key-1", Spec: fullSpec(), State: cove.Stopped, Cause: cove.ReasonSessionStopped, Was: cove.Paused, WasCause: cove.ReasonSessionPaused,
		Provider: "local", Trial: cove.TrialLost,
		Isolation: cove.Isolation{
			Boundary: cove.BoundaryNamespaces, Network: cove.Hard, Memory: cove.Hard,
			CPU: cove.Soft, PIDs: cove.Hard, Disk: cove.Soft, Files: cove.Absent, Policy: cove.Hard,
		},
		Instead: "gvisor", Node: "n1", Memory: cove.GiB, CreatedAt: epoch, LastActivity: epoch.Add(time.Second),
		ExpiresAt: epoch.Add(time.Hour), EndedAt: epoch.Add(2 * time.Hour), Archived: true, ArchiveSize: 3 * cove.MiB, Enlarged: cove.Workspace{Kind: cove.WorkspaceMemory, Size: 2 * cove.GiB, Files: 200_000, Moves: true}, LastPID: 42, Counted: []cove.PID{7, 9},
	}
}

func fullKey(id cove.ID) *cove.Key {
	return &cove.Key{
		ID: id, Name: "ci", Tenant: "acme", Hash: cove.HashSecret(string(id)),
		Scopes: []cove.Scope{cove.ScopeRead, cove.ScopeWrite},
		Limits: cove.KeyLimit{RatePerSecond: 2.5, Concurrent: 3, Sessions: 4, Data: fullGrant(), Namespace: "ns"}, Defaults: fullSpec(),
		CreatedAt: epoch, ExpiresAt: epoch.Add(time.Hour), RevokedAt: epoch.Add(time.Minute),
	}
}

func fullGrant() cove.DataGrant {
	return cove.DataGrant{
		Datasets: []string{"sales"}, Tables: []string{"sales.orders"},
		Columns: map[string][]string{"sales.orders": {"id"}}, MaxRows: 10, SQLOnly: true,
	}
}

func fullTenant(name string) *cove.Tenant {
	return &cove.Tenant{
		Name: name, Quota: cove.Bounds{Sessions: 10, Memory: 8 * cove.GiB, CPUSeconds: 3600.5, Disk: 20 * cove.GiB},
		UpdatedAt: epoch,
	}
}

func fullUsage() cove.Consumption {
	return cove.Consumption{Held: time.Hour + 1, MemoryTime: 0.25, CPU: time.Minute + 1, Executions: 3, Up: 4 * cove.GiB, Down: 5}
}

func fullSnapshot(id cove.ID) *cove.Snapshot {
	return &cove.Snapshot{
		ID: id, Tenant: "acme", Session: cove.NewID(), Name: "before", Provider: "local", Template: "python",
		Node: "n1", Size: 12345, Disk: 65536, CreatedAt: epoch, Pending: true,
	}
}

func fullVolume(id cove.ID) *cove.SavedVolume {
	return &cove.SavedVolume{ID: id, Tenant: "acme", Name: "data", Node: "n1", Limit: cove.GiB, Files: 1000, CreatedAt: epoch, Pending: true}
}

func fullRun(id cove.ID) *cove.Run {
	return &cove.Run{
		ID: id, Tenant: "acme", Owner: "key-1", State: cove.RunFailed, Node: "n1",
		Request: cove.RunRequest{
			Dataset: "sales", Files: []cove.RunFile{{Name: "orders", Path: "orders.csv"}}, Type: cove.QuerySQL,
			SQL: "SELECT 1", Python: "1", Timeout: 10 * time.Second, MaxRows: 200, MaxOutput: 64 * cove.KiB,
			Session: "06gy2sd2n6kfbsfb07wpkkzyf4", SaveAs: "top", Provider: "local", Flavor: "small", Thread: "t-1",
		},
		Decision: &cove.RunDecision{
			Allowed: true, Refusal: &cove.Refusal{Rule: "sql.table", Reason: "no", Word: "x", Line: 1, Column: 2},
			Tables: []string{"sales.orders"}, Columns: []string{"sales.orders.id"}, Imports: []string{"math"},
		},
		Timings: cove.RunTimings{Queue: 1, Judge: 2, Place: 3, Load: 4, Query: 5},
		Answer: &cove.RunAnswer{
			Status: "error", Columns: []string{"a"}, Rows: []json.RawMessage{json.RawMessage(`[1,"x"]`)}, RowCount: 1,
			Wall: time.Millisecond, Stdout: "out\n", Stderr: "err\n",
			Error: &cove.RunError{
				Type: cove.RunTimeout, Message: "too slow",
				Refusal: &cove.Refusal{Rule: "sql.table", Reason: "no", Word: "x", Line: 1, Column: 2},
			},
			Provider: "local", Types: []string{"BIGINT"}, Truncated: true, Loaded: true, Instead: "docker", Confined: cove.Hard,
		},
		CreatedAt: epoch, EndedAt: epoch.Add(time.Second),
	}
}

func fullMessage(id cove.ID) *cove.Message {
	return &cove.Message{
		ID: id, Tenant: "acme", Owner: "key-1", Thread: "t-1", Role: cove.RoleAssistant, Text: "Three.",
		Runs: []cove.ID{"06gy2sd2n6kfbsfb07wpkkzyf4"}, Query: "SELECT 1", Type: cove.QuerySQL,
		Error: &cove.RunError{
			Type: cove.RunSQLPolicy, Message: "no",
			Refusal: &cove.Refusal{Rule: "sql.table", Reason: "no", Word: "x", Line: 1, Column: 2},
		},
		Model: "m", Rounds: 2, Stopped: cove.ChatLength, CreatedAt: epoch,
	}
}

// samplesAreFull fails when a record has a field that no sample sets, so that a
// new field is shown to survive in every store.
func samplesAreFull(t *testing.T) {
	version := fullSession("x")
	version.Version = 1
	usage := fullUsage()
	for _, sample := range []any{version, fullKey("x"), fullTenant("x"), &usage, fullSnapshot("x"), fullVolume("x"), fullRun("x"), fullMessage("x")} {
		for _, path := range unset(reflect.ValueOf(sample).Elem(), "") {
			t.Errorf("the sample of %T does not set %s: add it to sample.go", sample, path)
		}
	}
}

// unset returns the fields that are zero, but for those that are never kept.
func unset(v reflect.Value, path string) []string {
	switch {
	case v.IsZero():
		return []string{path}
	case v.Kind() == reflect.Pointer:
		return unset(v.Elem(), path)
	case v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[time.Time]():
		return nil
	}
	var out []string
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Tag.Get("json") != "-" {
			out = append(out, unset(v.Field(i), path+"."+f.Name)...)
		}
	}
	return out
}
