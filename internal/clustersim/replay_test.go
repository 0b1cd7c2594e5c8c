package clustersim

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
)

// hour is three nodes, of which some crash, and hundreds of sessions.
func hour(t *testing.T, change func(*Config)) (Config, Trace) {
	t.Helper()
	cfg := Config{Seed: 7, Nodes: 3, Sandboxes: 60, Length: time.Hour, Median: 2 * time.Minute, Crashes: 24, Patience: 20 * time.Second}
	if change != nil {
		change(&cfg)
	}
	trace, err := Record(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, trace
}

// readBack writes a trace as a run would, and reads it.
func readBack(t *testing.T, trace Trace) Trace {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, e := range trace {
		if err := enc.Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadTrace(&b)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestReplayAgrees(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"crashes": nil,
		"full":    func(c *Config) { c.NodeMemory, c.Crashes = 12*cove.GiB, 0 },
		"no wait": func(c *Config) { c.NodeMemory, c.Crashes, c.Patience = 12*cove.GiB, 0, 0 },
	} {
		cfg, trace := hour(t, change)
		if back := readBack(t, trace); !cmp.Equal(back, trace) {
			t.Errorf("%s: the trace is read otherwise than it was written", name)
		}
		var out strings.Builder
		cfg.Seed = 99 // the model must not know the dice of the run
		if err := Replay(&out, cfg, trace); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
		if !strings.Contains(out.String(), "sessions lost") || strings.Contains(out.String(), "differs") {
			t.Errorf("%s:\n%s", name, out.String())
		}
	}
}

// TestReplayDisagrees alters traces as a cluster would that does not do what it
// should.
func TestReplayDisagrees(t *testing.T) {
	for name, tt := range map[string]struct {
		alter func(Trace) Trace
		says  string
	}{
		"all on one node": {func(t Trace) Trace {
			for i := range t {
				if t[i].Event == EventOpen || t[i].Event == EventClose {
					t[i].Node = "n00000"
				}
			}
			return t
		}, "memory over nodes"},
		"refused for no reason": {func(t Trace) Trace {
			var left Trace
			for i, e := range t {
				switch {
				case e.Event == EventOpen && i%4 == 0:
					e.Event, e.Node = EventRefused, ""
				case e.Event == EventClose:
					continue
				}
				left = append(left, e)
			}
			return left
		}, "sessions refused"},
		"waits for no reason": {func(t Trace) Trace {
			for i := range t {
				if t[i].Event == EventOpen {
					t[i].Waited = min(5000, t[i].At)
				}
			}
			return t
		}, "sessions that waited"},
		"losses without a crash": {func(t Trace) Trace {
			for i := range t {
				if t[i].Event == EventClose && i%2 == 0 {
					t[i].Event = EventLost
				}
			}
			return t
		}, "sessions lost"},
	} {
		cfg, trace := hour(t, func(c *Config) { c.Crashes = 0; c.NodeMemory = 200 * cove.GiB; c.NodeSessions = 500 })
		var out strings.Builder
		err := Replay(&out, cfg, tt.alter(trace))
		if cove.CodeOf(err) != cove.Conflict || !strings.Contains(cove.MessageOf(err), tt.says) || !strings.Contains(out.String(), "differs") {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}

func TestBadTraces(t *testing.T) {
	for text, says := range map[string]string{
		"":                                       "empty",
		"\n\n":                                   "empty",
		"{":                                      "line 1",
		"[1]":                                    "line 1",
		"\n\"x\"":                                "line 2",
		`{"at_ms":1,"event":"born","node":"a"}`:  "unknown",
		`{"at_ms":1,"event":"open"}`:             "no name",
		`{"at_ms":-1,"event":"open","node":"a"}`: "negative",
		`{"at_ms":1,"event":"open","node":"a","memory":-1}`:                    "negative",
		`{"at_ms":1,"event":"open","node":"a","waited_ms":2}`:                  "too large",
		`{"at_ms":999999999999,"event":"open","node":"a"}`:                     "too large",
		`{"at_ms":1e99,"event":"open","node":"a"}`:                             "line 1",
		`{"event":"x","node":"` + strings.Repeat("a", 8<<10):                   "cannot be read",
		`{"at_ms":1,"event":"open","node":"` + strings.Repeat("a", 300) + `"}`: "no name",
	} {
		if _, err := ReadTrace(strings.NewReader(text)); cove.CodeOf(err) != cove.Invalid || !strings.Contains(cove.MessageOf(err), says) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
	for text, says := range map[string]string{
		`{"event":"node","node":"b"}` + "\n" + `{"at_ms":1,"event":"open","node":"a"}`:  "no line for node",
		`{"event":"node","node":"a"}` + "\n" + `{"event":"node","node":"a"}`:            "two nodes",
		`{"event":"node","node":"a"}` + "\n" + `{"at_ms":1,"event":"close","node":"a"}`: "does not have",
		`{"event":"node","node":"a"}` + "\n" + `{"at_ms":1,"event":"lost","node":"a"}`:  "does not have",
		`{"at_ms":1,"event":"refused"}`:                                                 "nodes",
	} {
		trace, err := ReadTrace(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := Replay(&strings.Builder{}, Config{}, trace); cove.CodeOf(err) != cove.Invalid || !strings.Contains(cove.MessageOf(err), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add([]byte(`{"event":"node","node":"a","memory":9}` + "\n" + `{"at_ms":10,"event":"open","node":"a","memory":1,"waited_ms":5}` + "\n" + `{"at_ms":20,"event":"lost","node":"a","memory":1}` + "\n" + `{"at_ms":30,"event":"open","node":"a"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		trace, err := ReadTrace(bytes.NewReader(text))
		if err != nil {
			return
		}
		if r, err := trace.run(); err == nil && int(r.outcome.opened+r.outcome.refused) != len(r.arrivals) {
			t.Errorf("%d arrivals, %+v", len(r.arrivals), r.outcome)
		}
	})
}
