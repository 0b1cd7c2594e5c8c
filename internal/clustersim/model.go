package clustersim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cove-sandbox/cove"
)

// model is a cluster at one moment.
type model struct {
	cfg   Config
	now   time.Duration
	rng   *rand.Rand // of placement and of which node is asked
	nodes []node
	index map[string]int

	directory []cove.Node // what nodes said last, as the directory has it
	pictures  pictures    // the same, as nodes read it a while ago

	slots  []session
	free   []int32
	agenda agenda
	away   bool // the directory is

	ticks int
	stats Stats
	told  func(Event) // of what happens, if anybody wants to know
}

// Run plays a day.
func Run(cfg Config) (*Stats, error) {
	cfg = cfg.filled()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	m := newModel(cfg, nodesOf(cfg))
	m.plan()
	m.play(newDay(cfg))
	return m.finish(), nil
}

// Record plays a day and returns what happens as the trace of a run.
func Record(cfg Config) (Trace, error) {
	cfg = cfg.filled()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	var t Trace
	m := newModel(cfg, nodesOf(cfg))
	m.told = func(e Event) { t = append(t, e) }
	for i := range m.nodes {
		n := &m.nodes[i]
		t = append(t, Event{Event: EventNode, Node: n.id, Memory: n.capacity.Memory, Sessions: n.capacity.Sessions})
	}
	m.plan()
	m.play(newDay(cfg))
	return t, nil
}

// tell notes what happens to a session.
func (m *model) tell(event string, s *session) {
	if m.told == nil {
		return
	}
	e := Event{At: m.now.Milliseconds(), Event: event, Memory: s.memory}
	if event != EventRefused {
		e.Node = m.nodes[s.node].id
	}
	if event == EventOpen || event == EventRefused {
		e.Waited = (m.now - s.since).Milliseconds()
	}
	m.told(e)
}

func nodesOf(cfg Config) []node {
	nodes := make([]node, cfg.Nodes)
	for i := range nodes {
		nodes[i] = node{id: fmt.Sprintf("n%05d", i), capacity: cove.Bounds{Sessions: cfg.NodeSessions, Memory: cfg.NodeMemory}}
	}
	return nodes
}

// newModel returns a cluster whose nodes, in the order of their names, are up and
// known to each other.
func newModel(cfg Config, nodes []node) *model {
	m := &model{
		cfg: cfg, nodes: nodes, index: make(map[string]int, len(nodes)),
		rng: rand.New(rand.NewPCG(cfg.Seed, 2)), //nolint:gosec // a day that can be played again
	}
	m.stats.init(cfg)
	for i := range nodes {
		nodes[i].up, nodes[i].phase = true, i%ticksPerBeat
		m.index[nodes[i].id] = i
		m.directory = append(m.directory, nodes[i].announce(cove.NodeReady))
	}
	for i := range nodes {
		m.look(i)
	}
	return m
}

// play has everything happen that a day brings, in its order.
func (m *model) play(from source) {
	next, more := from.next()
	for m.now < m.cfg.Length {
		until := m.nextTick()
		if more && next.at < until {
			until = next.at
		}
		for m.agenda.due(until) {
			e := m.agenda.pop()
			m.now = e.at
			m.happen(e)
		}
		m.now = until
		if more && next.at == until {
			m.arrive(next)
			next, more = from.next()
			continue
		}
		m.tick()
	}
}

func (m *model) happen(e entry) {
	switch e.kind {
	case closes:
		if m.valid(e) {
			m.close(int32(e.who)) //nolint:gosec // a slot
		}
	case givesUp:
		if m.valid(e) && !m.slots[e.who].runs {
			m.giveUp(int32(e.who)) //nolint:gosec // a slot
		}
	case crashes:
		m.crash(e.who)
	case returns:
		m.back(e.who)
	case drains:
		m.drain(e.who)
	case undrained:
		m.nodes[e.who].cordoned = false
	case outage, outageEnds:
		m.away = e.kind == outage
	}
}

func (m *model) valid(e entry) bool { return m.slots[e.who].turn == e.turn }

// arrive asks any node for a session, which asks others.
func (m *model) arrive(a arrival) {
	m.stats.Arrived++
	if m.away {
		m.stats.Refused.Directory++
		m.tell(EventRefused, &session{memory: a.memory, since: m.now})
		return
	}
	asked, ok := m.asks()
	if !ok {
		m.stats.Refused.Full++
		m.tell(EventRefused, &session{memory: a.memory, since: m.now})
		return
	}
	slot := m.take()
	m.slots[slot] = session{
		turn: m.slots[slot].turn, since: m.now, length: a.length, memory: a.memory, movable: a.movable,
	}
	if !m.place(slot, m.cfg.Placement.order(asked.view.nodes, a.memory, m.rng)) {
		m.stats.Refused.Full++
		m.tell(EventRefused, &m.slots[slot])
		m.release(slot)
	}
}

// asks has a caller come to a node that is up, and returns it if one was found.
// Since it was asked, it looks at the others with its next beat.
func (m *model) asks() (*node, bool) {
	for range 64 {
		if n := &m.nodes[m.rng.IntN(len(m.nodes))]; n.up {
			n.wanted = true
			return n, true
		}
	}
	return nil, false
}

// place has the first node that takes a session run it. Where none does, who can wait
// does so at the first that answered, which is asked once more.
func (m *model) place(slot int32, order []cove.Node) bool {
	first := -1 // of those that answered
	for k := range order {
		i := m.index[order[k].ID]
		n := &m.nodes[i]
		m.stats.Asks++
		if n.takes(m.slots[slot].memory) && len(n.queue) == 0 {
			m.start(slot, i)
			return true
		}
		if n.up { // otherwise nobody was asked
			if first < 0 {
				first = i
			}
			m.stats.ops(m.now, opRefused, m.cfg.Costs.Refused)
		}
	}
	if first < 0 || m.cfg.Patience == 0 {
		return false
	}
	m.stats.Asks++
	return m.queue(slot, first)
}

// queue has a session wait at a node, if it may.
func (m *model) queue(slot int32, i int) bool {
	s, n := &m.slots[slot], &m.nodes[i]
	if !n.up {
		return false
	}
	if n.cordoned || len(n.queue) >= m.cfg.Queue {
		m.stats.ops(m.now, opRefused, m.cfg.Costs.Refused)
		return false
	}
	if m.roomSomewhere(s.memory) {
		m.stats.NeedlessWaits++
	}
	s.node = int32(i) //nolint:gosec // there are at most maxNodes
	n.queue = append(n.queue, waiting{slot, s.turn})
	m.agenda.add(entry{at: m.now + m.cfg.Patience, kind: givesUp, who: int(slot), turn: s.turn})
	m.stats.Queued++
	return true
}

func (m *model) roomSomewhere(memory cove.Bytes) bool {
	for i := range m.nodes {
		if n := &m.nodes[i]; n.takes(memory) && len(n.queue) == 0 {
			return true
		}
	}
	return false
}

// start has a session run on a node that has room for it.
func (m *model) start(slot int32, i int) {
	s, n := &m.slots[slot], &m.nodes[i]
	s.runs, s.node, s.place = true, int32(i), int32(len(n.sessions)) //nolint:gosec // both are bounded
	n.sessions = append(n.sessions, slot)
	n.memory += s.memory
	n.begun++
	s.ends = m.now + s.length
	m.agenda.add(entry{at: s.ends, kind: closes, who: int(slot), turn: s.turn})
	m.stats.opened(m, s)
	m.tell(EventOpen, s)
}

// close ends a session that runs, and lets in who waits.
func (m *model) close(slot int32) {
	i := int(m.slots[slot].node)
	m.tell(EventClose, &m.slots[slot])
	m.remove(slot)
	m.release(slot)
	m.stats.Closed++
	m.stats.ops(m.now, opClose, m.cfg.Costs.Close)
	m.admit(i)
}

func (m *model) giveUp(slot int32) {
	i := int(m.slots[slot].node)
	m.tell(EventRefused, &m.slots[slot])
	m.release(slot)
	m.stats.Refused.Full++
	m.stats.ops(m.now, opRefused, m.cfg.Costs.Refused)
	m.admit(i) // those behind may want less
}

// admit lets in those who wait at a node, in their order, until one does not fit.
func (m *model) admit(i int) {
	n := &m.nodes[i]
	for len(n.queue) > 0 && n.up {
		w := n.queue[0]
		if m.slots[w.slot].turn == w.turn {
			if !n.fits(m.slots[w.slot].memory) {
				return
			}
			m.start(w.slot, i)
		}
		n.queue = n.queue[1:]
	}
}

// remove takes a session that runs off its node.
func (m *model) remove(slot int32) {
	s := &m.slots[slot]
	n := &m.nodes[s.node]
	last := len(n.sessions) - 1
	moved := n.sessions[last]
	n.sessions[s.place] = moved
	m.slots[moved].place = s.place
	n.sessions = n.sessions[:last]
	n.memory -= s.memory
	m.stats.live--
}

// take returns a free slot.
func (m *model) take() int32 {
	if last := len(m.free) - 1; last >= 0 {
		slot := m.free[last]
		m.free = m.free[:last]
		return slot
	}
	m.slots = append(m.slots, session{})
	return int32(len(m.slots) - 1) //nolint:gosec // as many as there were at once
}

// release makes a slot free; what the agenda says of it is void.
func (m *model) release(slot int32) {
	m.slots[slot].turn++
	m.free = append(m.free, slot)
}
