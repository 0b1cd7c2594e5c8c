package clustertest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/cove-sandbox/cove/internal/clustertest"
	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

// TestFaults breaks a cluster for a minute, in the gate for ten seconds, or for
// COVE_FAULT_TIME, as COVE_FAULT_SEED says, and has the history checked. make fault
// runs it for five minutes.
func TestFaults(t *testing.T) {
	seed, length := uint64(21), time.Minute // the same plan each time; make fault has others
	if testing.Short() {
		seed, length = 5, 10*time.Second // a node loses power until its lease has run out, another one Redis
	}
	if text := os.Getenv("COVE_FAULT_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("COVE_FAULT_SEED: %v", err)
		}
	}
	if text := os.Getenv("COVE_FAULT_TIME"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil || length < 10*time.Second || length > time.Hour {
			t.Fatalf("COVE_FAULT_TIME: %q is no time between 10s and 1h", text)
		}
	}
	const lease, bound = 3 * time.Second, 12
	dir := t.ArtifactDir()
	rig := clustertest.Start(t, clustertest.Config{Nodes: 3, Bound: bound, Lease: lease, Logs: dir})

	path := filepath.Join(dir, "history.jsonl")
	t.Logf("seed %d, %v; the history is %s", seed, length, path)
	plan := clustertest.Plan(seed, 3, length, lease)
	for _, f := range plan {
		t.Log(f)
	}
	trial := clustertest.Trial{Seed: seed, Length: length, Plan: plan, Clients: 6, History: create(t, path)}
	if err := rig.Run(t.Context(), trial); err != nil {
		t.Errorf("the trial: %v", err)
	}
	report := check(t, path)
	t.Log(report.Counts)
	for _, v := range report.Violations {
		t.Error(v)
	}
	for rule, n := range report.Broken {
		t.Errorf("%d violations of %s; seed %d", n, rule, seed)
	}
	for _, what := range report.Counts.Lacks(least(length)) {
		t.Errorf("too little happened: %s", what)
	}
}

// least is what must have happened in a time, on a machine that does much else.
func least(length time.Duration) history.Least {
	s := int(length / time.Second)
	l := history.Least{
		Done:    map[history.Op]int{history.Write: 2 * s, history.Read: 2 * s, history.Exec: s, history.List: s / 2, history.Get: s / 2, history.Open: s / 4, history.Close: s / 30},
		Created: s / 6, Lost: s / 30, Kept: 3, Tokens: s, Faults: map[history.Op]int{},
	}
	for _, op := range history.Faults() {
		if length >= 5*time.Minute {
			l.Faults[op] = 2
		}
	}
	return l
}

func create(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func check(t *testing.T, path string) *history.Report {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := history.Load(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return history.Check(h)
}
