package clustersim

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// predictions is how many days are played for one trace: chance has its say in
// each, and a real run is one more of them.
const predictions = 64

// measure is something that a day has in a run and in the model.
type measure struct {
	name string
	of   func(outcome) float64
	// floor is how far the two may be apart in any case, by the number of arrivals;
	// otherwise it is four deviations between the days of the model.
	floor func(arrived float64) float64
}

// outcome is what is compared.
type outcome struct {
	opened, refused, lost, waited float64
	wait                          time.Duration // in the middle, of those who waited
	balance, spread               float64       // over time
}

var measures = []measure{
	{"sessions opened", func(o outcome) float64 { return o.opened }, few},
	{"sessions refused", func(o outcome) float64 { return o.refused }, few},
	{"sessions that waited", func(o outcome) float64 { return o.waited }, few},
	{"seconds they waited, p50", func(o outcome) float64 { return o.wait.Seconds() }, func(float64) float64 { return 2 }},
	{"sessions lost", func(o outcome) float64 { return o.lost }, few},
	{"memory over nodes: deviation ÷ mean", func(o outcome) float64 { return o.balance }, func(float64) float64 { return 0.1 }},
	{"memory over nodes: fullest ÷ mean", func(o outcome) float64 { return o.spread }, func(float64) float64 { return 0.15 }},
}

// few is a twentieth of the arrivals, or two of them.
func few(arrived float64) float64 { return max(2, arrived/20) }

// deviations is how far a run may be from the mean of the days, by how far these
// are from it.
const deviations = 4

// Replay writes what a real run came to beside what the model says of the same
// arrivals and crashes, and fails where they are too far apart. Of the config it
// takes the seed, the placement, the queue and the patience; nodes and sessions are
// those of the trace.
func Replay(w io.Writer, cfg Config, t Trace) error {
	r, err := t.run()
	if err != nil {
		return err
	}
	cfg.Nodes, cfg.Sandboxes, cfg.Length = len(r.nodes), max(len(r.arrivals), 1), max(r.length, beatEvery)
	cfg = cfg.filled()
	if err := cfg.check(); err != nil {
		return err
	}
	days := make([]outcome, predictions)
	for i := range days {
		days[i] = r.predict(cfg, uint64(i))
	}
	return compare(w, r.outcome, days, float64(len(r.arrivals)))
}

func compare(w io.Writer, real outcome, days []outcome, arrived float64) error {
	var b strings.Builder
	var apart []string
	b.WriteString("| | run | model | may differ by | |\n|---|---|---|---|---|\n")
	for _, m := range measures {
		values := make([]float64, len(days))
		for i, d := range days {
			values[i] = m.of(d)
		}
		expected, deviation := spread(values)
		tolerance := bounded(max(m.floor(arrived), deviations*deviation), expected)
		verdict := "ok"
		if math.Abs(m.of(real)-expected) > tolerance {
			verdict = "differs"
			apart = append(apart, m.name)
		}
		_, _ = fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f | %s |\n", m.name, m.of(real), expected, tolerance, verdict)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if len(apart) > 0 {
		return cove.Errorf(cove.Conflict, "the run is not what the model says of it: %s", strings.Join(apart, "; ")).
			Remedy("see which of the two is wrong: what nodes announce and who is asked, or internal/clustersim")
	}
	return nil
}

// little is so few that chance alone may bring none; of what is more, a run must have
// some, however far the days of the model are apart.
const (
	little = 5.0
	some   = 0.2 // of what is expected
)

func bounded(tolerance, expected float64) float64 {
	if expected <= little {
		return tolerance
	}
	return min(tolerance, (1-some)*expected)
}

func spread(values []float64) (middle, deviation float64) {
	middle = mean(values)
	var squares float64
	for _, v := range values {
		squares += (v - middle) * (v - middle)
	}
	return middle, math.Sqrt(squares / float64(len(values)))
}

// run is what a trace says of a real run: who came, what happened to nodes, and
// what came of it.
type run struct {
	nodes    []node
	arrivals []arrival
	crashes  []entry
	length   time.Duration
	outcome  outcome
}

// predict plays the run in the model.
func (r *run) predict(cfg Config, day uint64) outcome {
	cfg.Seed += day << 32
	m := newModel(cfg, slices.Clone(r.nodes))
	for _, e := range r.crashes {
		m.agenda.add(e)
	}
	for i := range m.nodes { // nobody knows when those of the run beat
		m.nodes[i].phase = m.rng.IntN(ticksPerBeat)
	}
	m.play(&list{r.arrivals})
	s := m.finish()
	return outcome{
		opened: float64(s.Opened), refused: float64(s.Refused.All()), lost: float64(s.Lost), waited: float64(s.Waited),
		wait: quantile(s.Waits, 0.5), balance: mean(s.Balance), spread: mean(s.Spread),
	}
}

// nodeLines is what to do about a node that is not known.
const nodeLines = `begin with {"at_ms":0,"event":"node","node":…,"memory":…,"sessions":…} for each`

// run reads a trace. A close or a loss belongs to the first session of the same
// node and size that is still there: which one of them it was changes nothing.
func (t Trace) run() (*run, error) {
	r := &run{length: t[len(t)-1].at() + time.Millisecond}
	nodes := map[string]int{}
	for _, e := range t {
		if e.Event == EventNode {
			if _, ok := nodes[e.Node]; ok {
				return nil, cove.Errorf(cove.Invalid, "the trace has two nodes %.60q", e.Node)
			}
			nodes[e.Node] = 0
			r.nodes = append(r.nodes, node{id: e.Node, capacity: cove.Bounds{Memory: e.Memory, Sessions: e.Sessions}})
		}
	}
	if len(r.nodes) == 0 || len(r.nodes) > maxNodes {
		return nil, cove.Errorf(cove.Invalid, "the trace names %d nodes, and must name from 1 to %d", len(r.nodes), maxNodes).Remedy("%s", nodeLines)
	}
	slices.SortFunc(r.nodes, func(a, b node) int { return cmp.Compare(a.id, b.id) })
	for i := range r.nodes {
		nodes[r.nodes[i].id] = i
	}
	b := books{run: r, nodes: nodes, open: map[account][]int{}, down: map[int]time.Duration{}, began: map[int]time.Duration{}}
	for _, e := range t {
		if err := b.enter(e); err != nil {
			return nil, err
		}
	}
	b.finish(t)
	return r, nil
}
