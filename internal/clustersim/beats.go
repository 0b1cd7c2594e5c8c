package clustersim

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// ticksPerBeat spreads the beats of nodes over the time between two: of each ten
// nodes, one beats at each tick.
const ticksPerBeat = 10

func (m *model) nextTick() time.Duration {
	return time.Duration(m.ticks+1) * beatEvery / ticksPerBeat
}

// tick is what happens by the clock, whatever sessions do.
func (m *model) tick() {
	m.ticks++
	if !m.away {
		for i := range m.nodes {
			if m.nodes[i].phase == m.ticks%ticksPerBeat {
				m.heartbeat(i)
			}
		}
	}
	if every(m.now, sampled) || m.cfg.Length < time.Hour {
		m.stats.sample(m)
	}
}

func every(now, interval time.Duration) bool { return now%interval == 0 }

// heartbeat has a node say how it is, or the directory notice that it does not.
func (m *model) heartbeat(i int) {
	n := &m.nodes[i]
	switch {
	case n.up:
		n.beat = m.now
		m.stats.ops(m.now, opBeat, m.cfg.Costs.Beat)
		m.directory[i] = n.announce(cove.NodeReady)
		if n.cordoned {
			m.directory[i].State = cove.NodeCordoned
		}
		m.learn(i)
	case m.now-n.beat >= leaseTime:
		m.directory[i].State = cove.NodeGone
	}
	m.stats.Herd = max(m.stats.Herd, n.begun)
	n.begun = 0
}

// learn has a node that beats look at the others, if it was asked for a session or
// did not look for a while.
func (m *model) learn(i int) {
	n := &m.nodes[i]
	n.beats++
	now := n.beats%looksAfter == 0
	if n.wanted || now {
		n.wanted = false
		m.look(i)
		m.stats.ops(m.now, opMembers, m.cfg.Costs.Members)
	}
	if now {
		m.stats.ops(m.now, opSweep, m.cfg.Costs.Sweep)
	}
}
