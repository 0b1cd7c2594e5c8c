package clustertest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/cove-sandbox/cove/internal/clustertest"
	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

func TestPlanIsItsSeed(t *testing.T) {
	for seed := range uint64(50) {
		a := clustertest.Plan(seed, 3, 5*time.Minute, 3*time.Second)
		if b := clustertest.Plan(seed, 3, 5*time.Minute, 3*time.Second); !slices.Equal(a, b) {
			t.Fatalf("seed %d has two plans", seed)
		}
		if seed > 0 && slices.Equal(a, clustertest.Plan(seed-1, 3, 5*time.Minute, 3*time.Second)) {
			t.Errorf("seeds %d and %d have the same plan", seed-1, seed)
		}
		seen := map[history.Op]int{}
		for i, f := range a {
			seen[f.Op]++
			if f.Node == f.Peer || f.At+f.For > 5*time.Minute {
				t.Errorf("seed %d: %+v", seed, f)
			}
			there := 0
			for _, g := range a[:i+1] {
				if g.At <= f.At && f.At < g.At+g.For {
					there++
				}
			}
			if there > 2 {
				t.Errorf("seed %d: %d faults at once at %v", seed, there, f.At)
			}
		}
		for _, op := range history.Faults() {
			if seen[op] == 0 {
				t.Errorf("seed %d: five minutes without %s", seed, op)
			}
		}
	}
}

func TestServerPlanIsItsSeed(t *testing.T) {
	for seed := range uint64(50) {
		a := clustertest.PlanServer(seed, 20)
		if !slices.Equal(a, clustertest.PlanServer(seed, 20)) || slices.Equal(a, clustertest.PlanServer(seed+1, 20)) {
			t.Errorf("the plan of seed %d is not its own", seed)
		}
		seen := map[history.Op]int{}
		for _, f := range a {
			seen[f.Op]++
		}
		if seen[history.Crash]+seen[history.DatabaseLoss] != 20 {
			t.Errorf("seed %d kills a server %d times", seed, seen[history.Crash]+seen[history.DatabaseLoss])
		}
		for _, op := range history.ServerFaults() {
			if seen[op] == 0 {
				t.Errorf("seed %d: twenty kills without %s", seed, op)
			}
		}
	}
}

func TestIntentsAreTheirSeed(t *testing.T) {
	draw := func(seed uint64, client int) []clustertest.Intent {
		var all []clustertest.Intent
		for s := clustertest.NewIntents(seed, client, 3); len(all) < 500; {
			all = append(all, s.Next())
		}
		return all
	}
	a := draw(1, 2)
	if !slices.Equal(a, draw(1, 2)) || slices.Equal(a, draw(1, 3)) || slices.Equal(a, draw(2, 2)) {
		t.Error("what a client wants is not its seed's")
	}
	for _, op := range []history.Op{
		history.Write, history.Read, history.Exec, history.List, history.Get, history.Open, history.Close, history.Stop, history.Start,
		history.Replace, history.Append, history.Tally, history.Set, history.Recall, history.Begin, history.Look,
	} {
		if !slices.ContainsFunc(a, func(in clustertest.Intent) bool { return in.Op == op }) {
			t.Errorf("nobody wants %s", op)
		}
	}
}
