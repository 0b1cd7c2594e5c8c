package clustersim

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func realRun(t *testing.T) Trace {
	t.Helper()
	file, err := os.Open("testdata/real.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	trace, err := ReadTrace(file)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// TestRealRun compares the model with the run of three real nodes that is kept: it
// needs no Redis. A benchmark of internal/cluster makes new ones.
func TestRealRun(t *testing.T) {
	trace := realRun(t)
	for seed := range uint64(4) {
		var out strings.Builder
		if err := Replay(&out, Config{Seed: seed + 1, Patience: 5 * time.Second}, trace); err != nil {
			t.Errorf("%v\n%s", err, out.String())
		}
	}
	r, err := trace.run()
	if err != nil {
		t.Fatal(err)
	}
	if o := r.outcome; o.lost == 0 || o.waited == 0 || o.refused == 0 {
		t.Errorf("a run in which nobody waits, is refused or loses a session says little: %+v", o)
	}
}

// TestLossesThatAreMissing leaves the first loss, which tells of the crash, and has the
// others end as if somebody had closed them.
func TestLossesThatAreMissing(t *testing.T) {
	trace, losses := realRun(t), 0
	for i := range trace {
		if trace[i].Event != EventLost {
			continue
		}
		if losses++; losses > 1 {
			trace[i].Event = EventClose
		}
	}
	var out strings.Builder
	err := Replay(&out, Config{Seed: 1, Patience: 5 * time.Second}, trace)
	if cove.CodeOf(err) != cove.Conflict || !strings.Contains(cove.MessageOf(err), "sessions lost") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestLengthsAfterAWait reads how long sessions were there: a wait is no part of it.
func TestLengthsAfterAWait(t *testing.T) {
	trace, err := ReadTrace(strings.NewReader(`{"event":"node","node":"a"}
{"at_ms":5000,"event":"open","node":"a","memory":1,"waited_ms":4000}
{"at_ms":6000,"event":"open","node":"a","memory":2}
{"at_ms":7000,"event":"close","node":"a","memory":1}
{"at_ms":8000,"event":"refused","memory":1,"waited_ms":500}
{"at_ms":9000,"event":"lost","node":"a","memory":2}`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := trace.run()
	if err != nil {
		t.Fatal(err)
	}
	want := []arrival{
		{at: time.Second, length: 2 * time.Second, memory: 1},
		{at: 6 * time.Second, length: 5 * time.Second, memory: 2}, // it was there for 3, and would have gone on for 2
		{at: 7500 * time.Millisecond, length: 2 * time.Second, memory: 1},
	}
	for i, a := range r.arrivals {
		if a != want[i] {
			t.Errorf("arrival %d is %+v, want %+v", i, a, want[i])
		}
	}
}
