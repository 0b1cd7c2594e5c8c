package cli_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/cli"
	"github.com/cove-sandbox/cove/internal/measure"
)

// TestBench proves that the command measures and tells; the numbers are not
// looked at.
func TestBench(t *testing.T) {
	b := newBox(t)
	text := b.ok("bench", "--rounds", "10")
	for _, want := range []string{"provider fake, ", " 10 rounds\n", "true on the host", "true in a live session", "first true from the pool", "create, true, destroy", "32 at once in one session", "32 at once in 32 sessions", "memory of an idle session: "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var r measure.Report
	if err := json.Unmarshal([]byte(b.ok("bench", "--json", "--rounds", "10")), &r); err != nil {
		t.Fatal(err)
	}
	if r.Provider != "fake" || r.Rounds != 10 || len(r.Timings) < 4 || len(r.Crowds) != 2 || r.Memory == nil {
		t.Errorf("%+v lacks something", r)
	}
}

func TestBenchRefuses(t *testing.T) {
	b := newBox(t)
	b.fails(2, "--rounds: 9 is out of range", "bench", "--rounds", "9")
	b.fails(2, "is unknown", "bench", "--provider", "podman")
	b.fails(2, "measures this machine", "bench", "--url", "http://127.0.0.1:1")
	b.fails(2, "takes no argument", "bench", "local")
}

func TestBenchShowsWhatIsMissing(t *testing.T) {
	var out bytes.Buffer
	err := cli.ShowBench(&out, measure.Report{
		Provider: "local", Machine: measure.Machine{Cores: 3, OS: "Linux 9.9", AsRoot: true}, Rounds: 7,
		Timings: []measure.Timing{{Name: "live", Median: 1.234, P95: 2, OverHost: 1.5}},
	})
	want := "provider local, 3 cores, Linux 9.9, as root, 7 rounds\n\n" +
		"TIME  MEDIAN  P95     / HOST  / BWRAP\nlive  1.23ms  2.00ms  1.50    -\n\n" +
		"THROUGHPUT  INSIDE  HOST  / HOST\n\nmemory of an idle session: cannot be read here; measure as root\n"
	if got := out.String(); err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}
