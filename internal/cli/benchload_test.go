package cli_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/cli"
	"github.com/cove-sandbox/cove/internal/measure"
)

// TestBenchLoad proves that all scenarios run, against a server of its own.
func TestBenchLoad(t *testing.T) {
	b := newBox(t)
	text := b.ok("bench", "--load", "--quick")
	for _, want := range []string{"10 sessions created at once ", "50 commands within 1s over 5 sessions ", "10 file operations at once ", " by 4 callers ", "4 of 4 scenarios passed\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, " FAIL ") {
		t.Error(text)
	}
}

func TestBenchLoadRefuses(t *testing.T) {
	b := newBox(t)
	b.fails(2, "--quick: goes with --load", "bench", "--quick")
	b.fails(2, "--flavor: goes with --load", "bench", "--flavor", "small")
	b.fails(2, "--rounds: does not go with --load", "bench", "--load", "--rounds", "10")
	b.fails(69, "http://127.0.0.1:1", "bench", "--load", "--url", "http://127.0.0.1:1")
}

func TestBenchLoadFails(t *testing.T) {
	b := newBox(t)
	out := b.fails(1, "", "bench", "--load", "--quick", "--json", "--flavor", "nosuch")
	var r struct {
		Server    string
		OK        bool
		Scenarios []measure.Scenario
	}
	if err := json.Unmarshal([]byte(out.out), &r); err != nil {
		t.Fatalf("%v: %s", err, out.out)
	}
	if r.OK || r.Server == "" || len(r.Scenarios) != 4 || r.Scenarios[0].Failed != 10 || !strings.Contains(r.Scenarios[0].Error, "nosuch") {
		t.Errorf("%+v", r)
	}
}

func TestLoadThatFailsIsShown(t *testing.T) {
	var out bytes.Buffer
	err := cli.ShowLoad(&out, "http://here", []measure.Scenario{
		{Name: "one", Done: 3, Median: 1, P95: 2, P99: 3, Took: 4},
		{Name: "two", Failed: 1, Error: "no \x1b[2J room"},
	})
	want := "SCENARIO  RESULT  DONE  FAILED  MEDIAN  P95     P99     TOOK\n" +
		"one       pass    3     0       1.00ms  2.00ms  3.00ms  4.0s\n" +
		"two       FAIL    0     1       0.00ms  0.00ms  0.00ms  0.0s\n\n" +
		"two: no \\x1b[2J room\n\nhttp://here: 1 of 2 scenarios passed\n"
	if got := out.String(); err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}
