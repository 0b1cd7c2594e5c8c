package cluster_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/archive"
	"github.com/cove-sandbox/cove/internal/clustersim"
	"github.com/cove-sandbox/cove/store/redis"
	"github.com/cove-sandbox/cove/store/redis/redistest"
)

// meter is three nodes that do nothing by themselves: their leases are longer than
// the test, so that what the directory is asked is asked by the test.
type meter struct {
	*testing.T

	redis   *redistest.Server
	prefix  string
	a, b, c *node
	last    *cove.Session
}

func newMeter(t *testing.T) *meter {
	t.Helper()
	r := newRedis(t)
	m := &meter{T: t, redis: r, prefix: settled(t, r.URL(), 1)()}
	shared, err := archive.Open(filepath.Join(t.TempDir(), "shared"))
	m.must(err)
	name := func(name string, most int) *node {
		n := newNode(t, r.URL(), m.prefix, name)
		n.lease, n.moving, n.o.MaxSessions = time.Hour, shared, most
		return n
	}
	m.a, m.b, m.c = name("a", 0), name("b", 0), name("c", 1)
	start(t, m.a, m.b, m.c)
	m.must(m.open(m.b.member.Here(somebody()), cove.Spec{})()) // now all know the tenant's bounds
	m.must(m.end(m.b)())
	m.lost()
	m.count(m.steps()) // the first of a script is sent once more, with its text
	return m
}

func (m *meter) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *meter) asked() int64 {
	return m.a.directory.Commands() + m.b.directory.Commands() + m.c.directory.Commands()
}

// step is something that is done, and how often the directory may be asked for it.
type step struct {
	name string
	most int64
	do   func() error
}

// count does all steps and returns what each asked.
func (m *meter) count(steps []step) map[string]int64 {
	m.Helper()
	took := map[string]int64{}
	for _, s := range steps {
		before := m.asked()
		if err := s.do(); err != nil {
			m.Fatalf("%s: %v", s.name, err)
		}
		took[s.name] = m.asked() - before
	}
	return took
}

func (m *meter) open(p cove.Platform, spec cove.Spec) func() error {
	return func() (err error) {
		m.last, err = p.Sessions().Open(m.Context(), cove.OpenRequest{Spec: spec})
		return err
	}
}

func (m *meter) exec(n *node) func() error {
	return func() error {
		_, err := n.member.As(somebody()).Processes(m.last.ID).Exec(m.Context(), cove.ExecRequest{Line: "true"})
		return err
	}
}

func (m *meter) end(n *node) func() error {
	return func() error {
		_, err := n.member.As(somebody()).Sessions().Close(m.Context(), m.last.ID, false)
		return err
	}
}

// full is a node that has as many sessions as it may.
func (m *meter) full() error {
	held := m.c.member.Here(somebody()).Sessions()
	_, err := held.Open(m.Context(), cove.OpenRequest{})
	if cove.ReasonOf(err) == cove.ReasonCapacity {
		return nil
	}
	return cove.Wrap(cove.Internal, err, "a second session on a node for one: %v", err)
}

// steps is what sessions and nodes do, in an order in which each can be done.
func (m *meter) steps() []step {
	ctx, who := m.Context(), somebody()
	ann := cove.Spec{User: "ann", Thread: "1"}
	return []step{
		{"create", 2, m.open(m.a.member.Here(who), cove.Spec{})},
		{"exec on the owner", 0, m.exec(m.a)},
		{"exec elsewhere, first", 1, m.exec(m.b)},
		{"exec elsewhere, later", 0, m.exec(m.b)},
		{"stop", 1, func() error { _, err := m.a.member.As(who).Sessions().Stop(ctx, m.last.ID); return err }},
		{"start", 4, func() error { _, err := m.a.member.As(who).Sessions().Start(ctx, m.last.ID); return err }},
		{"close", 1, m.end(m.a)},
		{"create on c", 2, m.open(m.c.member.Here(who), cove.Spec{})},
		{"refuse", 1, m.full},
		{"close elsewhere, first", 2, m.end(m.a)},
		{"create for a thread", 3, m.open(m.b.member.As(who), ann)},
		{"open for the thread again, on any node", 1, m.open(m.a.member.As(who), ann)},
		{"close elsewhere", 1, m.end(m.a)},
		{"beat", 1, func() error { return m.a.member.BeatNow(ctx) }},
		{"members", 1, func() error { m.a.member.Look(ctx); return nil }},
		{"sweep", 1, func() error { _, err := m.a.directory.Sweep(ctx); return err }},
	}
}

// TestWhatTheDirectoryIsAsked holds Cove to the numbers with which docs/scale.md
// counts. A larger one is a reason to think; a smaller one, to write it down.
func TestWhatTheDirectoryIsAsked(t *testing.T) {
	m := newMeter(t)
	steps := m.steps()
	took := m.count(steps)
	for _, s := range steps {
		if took[s.name] != s.most {
			t.Errorf("%s asks the directory %d times and should %d times", s.name, took[s.name], s.most)
		}
	}
	move := m.move()
	want := clustersim.Costs{
		Create: float64(took["create for a thread"]), Close: float64(took["close"]), Refused: float64(took["refuse"]), Move: float64(move),
		Lost: m.lost(), Lookup: float64(took["exec elsewhere, first"]), Beat: float64(took["beat"]), Members: float64(took["members"]), Sweep: float64(took["sweep"]),
	}
	if got := clustersim.Measured(); got != want {
		t.Errorf("internal/clustersim counts with %+v, and this is %+v", got, want)
	}
	m.weigh()
}

// move drains a session from one node to another and returns what that asked.
func (m *meter) move() (asked int64) {
	m.must(m.open(m.c.member.Here(somebody()), cove.Spec{})()) // so that it is full
	for range 2 {                                              // the first time, with the texts of scripts
		m.must(m.open(m.a.member.Here(somebody()), cove.Spec{Workspace: cove.Workspace{Moves: true}})())
		before := m.asked()
		m.must(m.a.directory.Cordon(m.Context(), "a", true))
		m.must(m.a.member.BeatNow(m.Context()))
		for m.field("node") != "" {
			<-time.After(10 * time.Millisecond)
		}
		m.must(m.c.member.BeatNow(m.Context()))
		m.b.member.Look(m.Context())
		const around = 4 // the cordon, beats and the look, which are for all sessions
		s, err := m.b.member.As(somebody()).Sessions().Start(m.Context(), m.last.ID)
		m.must(err)
		asked = m.asked() - before - around
		if s.Node != "b" {
			m.Errorf("the session moved to %q", s.Node)
		}
		m.must(m.a.directory.Cordon(m.Context(), "a", false))
		m.must(m.a.member.BeatNow(m.Context()))
	}
	return asked
}

// field is what Redis has of the last session, without asking through a node.
func (m *meter) field(name string) string {
	return m.redis.Do("HGET", fmt.Sprintf("{%s}:session:%s", m.prefix, m.last.ID), name)
}

// lost is what each session of a node that is gone asks, when it is swept.
func (m *meter) lost() float64 {
	d, err := redis.Open(m.Context(), redis.Config{URL: m.redis.URL(), Node: "d", Instance: "d", Lease: time.Hour, Prefix: m.prefix})
	m.must(err)
	_, err = d.Beat(m.Context(), cove.Node{ID: "d"})
	m.must(err)
	const sessions = 10
	for range sessions {
		m.must(d.PutSession(m.Context(), &cove.Session{ID: cove.NewID(), Tenant: "acme", Node: "d", State: cove.Running}))
	}
	m.must(d.Leave(m.Context(), 0))
	m.must(d.Close())
	before := m.asked()
	n, err := m.a.directory.Sweep(m.Context())
	m.must(err)
	if n != sessions {
		m.Errorf("%d of %d sessions are lost with their node", n, sessions)
	}
	const looks = 2 // one that finds them, and one that finds no more
	return float64(m.asked()-before-looks) / sessions
}

// weigh compares what records take in Redis with what docs/scale.md counts with.
func (m *meter) weigh() {
	m.must(m.open(m.a.member.Here(somebody()), cove.Spec{User: "somebody", Thread: "0123456789abcdef", Metadata: map[string]string{"project": "demo"}})())
	const other = 24 * 4 // in three sorted sets and by what it holds: an id and a number, about
	for what, most := range map[string]int{"session:" + string(m.last.ID): int(clustersim.RecordSize), "node:a": int(clustersim.NodeSize)} {
		size, err := strconv.Atoi(m.redis.Do("MEMORY", "USAGE", fmt.Sprintf("{%s}:%s", m.prefix, what), "SAMPLES", "0"))
		m.must(err)
		m.Logf("%s takes %d bytes", what, size)
		if size == 0 || size+other > most {
			m.Errorf("%s takes %d bytes; internal/clustersim counts with %d", what, size, most)
		}
	}
}
