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
	seed, length := seedOr(t, 21), time.Minute // the same plan each time; make fault has others
	if testing.Short() {
		seed, length = seedOr(t, 33), 10*time.Second // a node loses power, then all start against an empty Redis
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
	judge(t, rig, dir, least(length), clustertest.Trial{Seed: seed, Length: length, Clients: 6, Plan: clustertest.Plan(seed, 3, length, lease)})
}

// TestServerFaults kills a server by itself two hundred times, in the gate eight times,
// freezes it, fills its disk and removes its database, and has the history checked.
func TestServerFaults(t *testing.T) {
	seed, kills := seedOr(t, 7), 200
	if testing.Short() {
		kills = 8
	}
	dir := t.ArtifactDir()
	rig := clustertest.Start(t, clustertest.Config{Nodes: 1, Bound: 12, Logs: dir})
	least := history.Least{Done: map[history.Op]int{history.Write: kills, history.Read: kills, history.Exec: kills, history.Open: 5}, Created: 5, Kept: 3, Tokens: kills, Faults: map[history.Op]int{history.Crash: kills / 2}}
	judge(t, rig, dir, least, clustertest.Trial{Seed: seed, Length: time.Hour, Clients: 4, Plan: clustertest.PlanServer(seed, kills)})
}

// seedOr is the seed that COVE_FAULT_SEED names.
func seedOr(t *testing.T, seed uint64) uint64 {
	t.Helper()
	text := os.Getenv("COVE_FAULT_SEED")
	if text == "" {
		return seed
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("COVE_FAULT_SEED: %v", err)
	}
	return seed
}

// judge goes through a trial, and holds its history against the rules.
func judge(t *testing.T, rig *clustertest.Rig, dir string, least history.Least, trial clustertest.Trial) {
	t.Helper()
	path := filepath.Join(dir, "history.jsonl")
	t.Logf("seed %d; the history is %s", trial.Seed, path)
	for _, f := range trial.Plan {
		t.Log(f)
	}
	trial.History = create(t, path)
	if err := rig.Run(t.Context(), trial); err != nil {
		t.Errorf("the trial: %v", err)
	}
	report := check(t, path)
	t.Log(report.Counts)
	for _, v := range report.Violations {
		t.Error(v)
	}
	for rule, n := range report.Broken {
		t.Errorf("%d violations of %s; seed %d", n, rule, trial.Seed)
	}
	for _, what := range report.Counts.Lacks(least) {
		t.Errorf("too little happened: %s", what)
	}
}

// least is what must have happened in a time, on a machine that does much else.
func least(length time.Duration) history.Least {
	s := int(length / time.Second)
	l := history.Least{
		Done:    map[history.Op]int{history.Write: s, history.Read: s, history.Exec: s, history.List: s / 2, history.Get: s / 2, history.Open: s / 4, history.Close: s / 30, history.Append: s / 4, history.Tally: s / 4, history.Set: s / 4, history.Recall: s / 8, history.Replace: s / 8, history.Stop: s / 12, history.Begin: s / 12},
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
