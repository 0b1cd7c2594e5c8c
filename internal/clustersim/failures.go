package clustersim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
)

// plan enters into the agenda what will go wrong, and what operators do.
func (m *model) plan() {
	rng := rand.New(rand.NewPCG(m.cfg.Seed, 3)) //nolint:gosec // a day that can be played again
	if m.cfg.Crashes > 0 {
		mean := float64(24*time.Hour) / m.cfg.Crashes
		for i := range m.nodes {
			for at := time.Duration(rng.ExpFloat64() * mean); at < m.cfg.Length; at += m.cfg.Restart + time.Duration(rng.ExpFloat64()*mean) {
				m.agenda.add(entry{at: at, kind: crashes, who: i})
				m.agenda.add(entry{at: at + m.cfg.Restart, kind: returns, who: i})
			}
		}
	}
	for k := range m.cfg.Drains {
		at := m.cfg.Length * time.Duration(k+1) / time.Duration(m.cfg.Drains+1)
		i := rng.IntN(len(m.nodes))
		m.agenda.add(entry{at: at, kind: drains, who: i})
		m.agenda.add(entry{at: at + m.cfg.Drained, kind: undrained, who: i})
	}
	if m.cfg.Outage > 0 {
		at := m.cfg.Length * 10 / 24 // in the morning, while load grows
		m.agenda.add(entry{at: at, kind: outage})
		m.agenda.add(entry{at: at + m.cfg.Outage, kind: outageEnds})
	}
}

// crash ends a node with all that it has. The others learn of it when its lease
// has run out.
func (m *model) crash(i int) {
	n := &m.nodes[i]
	if !n.up {
		return
	}
	n.up = false
	m.stats.Crashes++
	for len(n.sessions) > 0 {
		slot := n.sessions[len(n.sessions)-1]
		m.tell(EventLost, &m.slots[slot])
		m.remove(slot)
		m.release(slot)
		m.stats.Lost++
		m.stats.ops(m.now, opSweep, m.cfg.Costs.Lost)
	}
	for _, w := range n.queue {
		if m.slots[w.slot].turn == w.turn {
			m.tell(EventRefused, &m.slots[w.slot])
			m.release(w.slot)
			m.stats.Refused.Crash++
		}
	}
	n.queue = nil
}

// back has a node begin again, empty.
func (m *model) back(i int) {
	m.nodes[i].up = true
	m.nodes[i].beat = m.now
	if !m.away {
		m.directory[i] = m.nodes[i].announce(cove.NodeReady)
		m.look(i)
	}
}

// drain gives away the sessions of a node that can move. The others stay and end
// by themselves; the node is given nothing new.
func (m *model) drain(i int) {
	n := &m.nodes[i]
	if !n.up || n.cordoned {
		return
	}
	n.cordoned = true
	m.directory[i].State = cove.NodeCordoned // who drains writes it at once
	m.stats.Drains++
	for _, slot := range slices.Clone(n.sessions) {
		if m.slots[slot].movable && m.move(slot) {
			m.stats.Moved++
		} else {
			m.stats.Stayed++
		}
	}
}

// move has another node run a session, if one has room.
func (m *model) move(slot int32) bool {
	s := m.slots[slot]
	for _, o := range m.cfg.Placement.order(m.nodes[s.node].view.nodes, s.memory, m.rng) {
		i := m.index[o.ID]
		n := &m.nodes[i]
		if i == int(s.node) || !n.takes(s.memory) || len(n.queue) > 0 {
			continue
		}
		m.tell(EventClose, &m.slots[slot])
		m.remove(slot)
		m.stats.live++ // it goes on
		t := &m.slots[slot]
		t.node, t.place = int32(i), int32(len(n.sessions)) //nolint:gosec // both are bounded
		n.sessions = append(n.sessions, slot)
		n.memory += s.memory
		n.begun++
		m.stats.ops(m.now, opMove, m.cfg.Costs.Move)
		m.tell(EventOpen, &session{node: t.node, memory: t.memory, since: m.now})
		return true
	}
	return false
}
