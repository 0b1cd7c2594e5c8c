package clustersim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/cove-sandbox/cove"
)

// configs are days with little room and much that goes wrong.
func configs(rt *rapid.T) Config {
	return Config{
		Seed:      rapid.Uint64Range(1, 1<<40).Draw(rt, "seed"),
		Nodes:     rapid.IntRange(1, 12).Draw(rt, "nodes"),
		Sandboxes: rapid.IntRange(1, 60).Draw(rt, "sandboxes"),
		Length:    time.Duration(rapid.IntRange(1, 70).Draw(rt, "minutes")) * time.Minute,
		// From what holds one large sandbox to more than is needed.
		NodeMemory:   cove.Bytes(rapid.IntRange(4, 32).Draw(rt, "memory")) * cove.GiB,
		NodeSessions: rapid.IntRange(0, 20).Draw(rt, "sessions"),
		Queue:        rapid.IntRange(0, 8).Draw(rt, "queue"),
		Patience:     time.Duration(rapid.IntRange(0, 90).Draw(rt, "patience")) * time.Second,
		Placement:    rapid.SampledFrom(Placements()).Draw(rt, "placement"),
		Median:       time.Duration(rapid.IntRange(5, 900).Draw(rt, "median")) * time.Second,
		Crashes:      rapid.Float64Range(0, 200).Draw(rt, "crashes"),
		Restart:      time.Duration(rapid.IntRange(1, 300).Draw(rt, "restart")) * time.Second,
		Drains:       rapid.IntRange(0, 8).Draw(rt, "drains"),
		Movable:      rapid.Float64Range(0, 1).Draw(rt, "movable"),
		Outage:       time.Duration(rapid.IntRange(0, 120).Draw(rt, "outage")) * time.Second,
	}
}

// watched is arrivals, with a look at the whole cluster at each.
type watched struct {
	source

	look func()
}

func (w watched) next() (arrival, bool) {
	w.look()
	return w.source.next()
}

// wrong says what no cluster can be.
func (m *model) wrong() string {
	live := 0
	for i := range m.nodes {
		n := &m.nodes[i]
		var memory cove.Bytes
		for place, slot := range n.sessions {
			s := m.slots[slot]
			memory += s.memory
			if int(s.node) != i || int(s.place) != place || !s.runs {
				return fmt.Sprintf("node %d has slot %d, which says %+v", i, slot, s)
			}
		}
		switch {
		case memory != n.memory || n.memory < 0 || n.memory > n.capacity.Memory:
			return fmt.Sprintf("node %d says %s of %s, and its sessions have %s", i, n.memory, n.capacity.Memory, memory)
		case n.capacity.Sessions > 0 && len(n.sessions) > n.capacity.Sessions:
			return fmt.Sprintf("node %d has %d sessions of %d", i, len(n.sessions), n.capacity.Sessions)
		case !n.up && len(n.sessions)+len(n.queue) > 0:
			return fmt.Sprintf("node %d is down and has sessions", i)
		case len(n.queue) > m.cfg.Queue:
			return fmt.Sprintf("%d wait at node %d", len(n.queue), i)
		}
		live += len(n.sessions)
	}
	if live != m.stats.live {
		return fmt.Sprintf("%d live, and %d are counted", live, m.stats.live)
	}
	return ""
}

// TestConservation plays days, and looks at the cluster whenever somebody comes:
// no node is over its bounds. In the end nobody is missing.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := configs(rt).filled()
		if err := cfg.check(); err != nil {
			rt.Fatal(err)
		}
		m := newModel(cfg, nodesOf(cfg))
		m.plan()
		m.play(watched{newDay(cfg), func() {
			if wrong := m.wrong(); wrong != "" {
				rt.Fatalf("at %s %s", m.now, wrong)
			}
		}})
		s := m.finish()
		if s.Arrived != s.Closed+s.Lost+s.Refused.All()+s.Living+s.Waiting {
			rt.Fatalf("of %d who came, %d closed, %d were lost, %d refused, %d live and %d wait", s.Arrived, s.Closed, s.Lost, s.Refused.All(), s.Living, s.Waiting)
		}
		if s.Opened != s.Closed+s.Lost+s.Living || s.Waited > s.Queued || s.Opened > s.Arrived {
			rt.Fatalf("%+v", s)
		}
		for _, wait := range s.Waits {
			if wait > cfg.Patience {
				rt.Fatalf("somebody waited for %s, and patience is %s", wait, cfg.Patience)
			}
		}
	})
}

func TestSameSeedSameDay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := configs(rt)
		a, errA := Run(cfg)
		b, errB := Run(cfg)
		if errA != nil || errB != nil || !cmp.Equal(a, b, cmp.AllowUnexported(Stats{}, burden{})) {
			rt.Fatalf("%v, %v: %s", errA, errB, cmp.Diff(a, b, cmp.AllowUnexported(Stats{}, burden{})))
		}
	})
	one, err := Run(Config{Seed: 1, Nodes: 5, Sandboxes: 100})
	if err != nil {
		t.Fatal(err)
	}
	two, err := Run(Config{Seed: 2, Nodes: 5, Sandboxes: 100})
	if err != nil || cmp.Equal(one, two, cmpopts.IgnoreUnexported(Stats{})) {
		t.Errorf("another seed gives the same day, %v", err)
	}
}

func day1000(t *testing.T, change func(*Config)) *Stats {
	t.Helper()
	cfg := Config{Nodes: 10, Sandboxes: 1000, Patience: 30 * time.Second}
	change(&cfg)
	s, err := Run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWhatADayIs looks at whether the day has what it was told to have.
func TestWhatADayIs(t *testing.T) {
	quiet := day1000(t, func(*Config) {})
	if quiet.Peak < 800 || quiet.Peak > 1250 || quiet.Lost+quiet.Moved+quiet.Refused.All() > 0 {
		t.Errorf("a quiet day of 1,000 sandboxes: %d at once, %d lost, %d moved, %+v", quiet.Peak, quiet.Lost, quiet.Moved, quiet.Refused)
	}
	if s := day1000(t, func(c *Config) { c.Crashes = 1 }); s.Crashes == 0 || s.Lost == 0 {
		t.Errorf("%d crashes lose %d", s.Crashes, s.Lost)
	}
	if s := day1000(t, func(c *Config) { c.Drains, c.Movable = 3, 1 }); s.Drains != 3 || s.Moved == 0 || s.Stayed > 0 || s.Lost > 0 {
		t.Errorf("%d drains move %d, leave %d and lose %d", s.Drains, s.Moved, s.Stayed, s.Lost)
	}
	if s := day1000(t, func(c *Config) { c.Outage = 10 * time.Minute }); s.Refused.Directory == 0 || s.Lost > 0 {
		t.Errorf("an outage refuses %d and loses %d", s.Refused.Directory, s.Lost)
	}
	if s := day1000(t, func(c *Config) { c.NodeMemory = 100 * cove.GiB }); s.Waited == 0 || s.Refused.Full == 0 || quantile(s.Waits, 0.5) <= 0 {
		t.Errorf("without enough room, %d wait for %s and %d are refused", s.Waited, quantile(s.Waits, 0.5), s.Refused.Full)
	}
	if s := day1000(t, func(c *Config) { c.NodeMemory, c.Patience = 100*cove.GiB, 0 }); s.Waited > 0 || s.Refused.Full == 0 {
		t.Errorf("without patience, %d wait and %d are refused", s.Waited, s.Refused.Full)
	}
}

// TestWhyTheBetterOfTwo is what decision 053 rests on.
func TestWhyTheBetterOfTwo(t *testing.T) {
	of := map[Placement]*Stats{}
	for _, p := range Placements() {
		of[p] = day1000(t, func(c *Config) { c.Placement, c.Nodes, c.Sandboxes, c.Length = p, 50, 5000, 6*time.Hour })
	}
	if two, chance := mean(of[BetterOfTwo].Balance), mean(of[Chance].Balance); two > chance/2 {
		t.Errorf("the deviation is %.3f with the better of two, and %.3f by chance", two, chance)
	}
	if two, least := of[BetterOfTwo].Herd, of[LeastLoaded].Herd; two > least/2 {
		t.Errorf("at most %d begin on one node between two announcements with the better of two, and %d on the least loaded", two, least)
	}
}

// TestOperations counts by hand what a small day asks of the directory.
func TestOperations(t *testing.T) {
	cfg := Config{Nodes: 4, Sandboxes: 10, Length: 100 * time.Second, Costs: Costs{Create: 3, Close: 2, Beat: 1, Members: 1, Sweep: 1, Lookup: 1}}.filled()
	m := newModel(cfg, nodesOf(cfg))
	m.play(&list{[]arrival{
		{at: time.Second, length: 10 * time.Second, memory: cove.GiB},
		{at: 50 * time.Second, length: time.Hour, memory: cove.GiB},
	}})
	s := m.finish()
	got := s.burden.total
	for o, want := range map[op]float64{opCreate: 6, opClose: 2, opBeat: 160, opSweep: 40, opMembers: 40 + 2, opRefused: 0, opMove: 0} {
		if got[o] != want {
			t.Errorf("%s: %g operations, want %g", opNames[o], got[o], want)
		}
	}
	if l := lookups(4, 1e9); l != 3 {
		t.Errorf("a session that all nodes are asked for is looked up by %g of 3", l)
	}
	if l := lookups(1, 100); l != 0 {
		t.Errorf("the only node looks up %g", l)
	}
}

// TestWhoWaits asks three nodes for one session each, in their order: who waits does so
// at the first that answered, when all have said no.
func TestWhoWaits(t *testing.T) {
	busy := func(m *model, nodes ...int) {
		for _, i := range nodes {
			m.start(m.take(), i)
		}
	}
	for name, c := range map[string]struct {
		before         func(*model)
		at             int    // where it runs
		waiting        [3]int // at each node
		asks, refusals int
	}{
		"the first has room":        {before: func(*model) {}, at: 0, asks: 1},
		"another has room":          {before: func(m *model) { busy(m, 0, 1) }, at: 2, asks: 3, refusals: 2},
		"none has room":             {before: func(m *model) { busy(m, 0, 1, 2) }, at: -1, waiting: [3]int{1}, asks: 4, refusals: 3},
		"one is down":               {before: func(m *model) { busy(m, 0, 2); m.crash(1) }, at: -1, waiting: [3]int{1}, asks: 4, refusals: 2},
		"the first is down":         {before: func(m *model) { busy(m, 1, 2); m.crash(0) }, at: -1, waiting: [3]int{1: 1}, asks: 4, refusals: 2},
		"the first is cordoned":     {before: func(m *model) { busy(m, 1, 2); m.nodes[0].cordoned = true }, at: -1, asks: 4, refusals: 4},
		"all are down":              {before: func(m *model) { m.crash(0); m.crash(1); m.crash(2) }, at: -1, asks: 3},
		"nobody can wait":           {before: func(m *model) { busy(m, 0, 1, 2); m.cfg.Patience = 0 }, at: -1, asks: 3, refusals: 3},
		"as many wait as may":       {before: func(m *model) { busy(m, 0, 1, 2); m.cfg.Queue = 0 }, at: -1, asks: 4, refusals: 4},
		"somebody waits at another": {before: func(m *model) { busy(m, 0); m.queue(m.take(), 1) }, at: 2, waiting: [3]int{1: 1}, asks: 3, refusals: 2},
	} {
		cfg := Config{Nodes: 3, NodeSessions: 1, Queue: 8, Patience: time.Minute, Costs: Costs{Refused: 1}}.filled()
		m := newModel(cfg, nodesOf(cfg))
		c.before(m)
		slot := m.take()
		taken := m.place(slot, m.directory)
		s, refused := m.slots[slot], int(m.stats.burden.total[opRefused])
		waiting := [3]int{len(m.nodes[0].queue), len(m.nodes[1].queue), len(m.nodes[2].queue)}
		if taken != (c.at >= 0 || c.waiting != [3]int{}) || s.runs != (c.at >= 0) || s.runs && int(s.node) != c.at || waiting != c.waiting {
			t.Errorf("%s: taken is %v, %+v, and %v wait", name, taken, s, waiting)
		}
		if m.stats.Asks != c.asks || refused != c.refusals {
			t.Errorf("%s: %d asks and %d refusals, want %d and %d", name, m.stats.Asks, refused, c.asks, c.refusals)
		}
	}
}

func TestBadConfigs(t *testing.T) {
	for name, cfg := range map[string]Config{
		"nodes": {Nodes: -1}, "sandboxes": {Sandboxes: maxSandboxes + 1}, "length": {Length: -1}, "median": {Median: 1}, "bounds": {Queue: -1},
		"failures": {Movable: 2}, "placement": {Placement: "best"},
	} {
		_, err := Run(cfg)
		if _, also := Record(cfg); cove.CodeOf(err) != cove.Invalid || !strings.HasPrefix(cove.MessageOf(err), name) || cove.CodeOf(also) != cove.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAgenda(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var a agenda
		var want []entry
		for i, at := range rapid.SliceOfN(rapid.IntRange(0, 20), 0, 100).Draw(rt, "times") {
			e := entry{at: time.Duration(at), who: i}
			a.add(e)
			want = append(want, e)
		}
		slices.SortStableFunc(want, func(x, y entry) int { return int(x.at - y.at) })
		for _, w := range want {
			if got := a.pop(); got.at != w.at || got.who != w.who {
				rt.Fatalf("%+v comes before %+v", got, w)
			}
		}
	})
}
