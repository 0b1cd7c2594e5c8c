package clustersim

import "github.com/cove-sandbox/cove"

// picture is what the directory knew at a tick. All nodes that looked then have the
// same, and it is used again when none of them has it any more.
type picture struct {
	nodes   []cove.Node
	readers int
}

// pictures makes them.
type pictures struct {
	tick   int
	latest *picture // of the tick
	free   []*picture
}

// look has a node know what the directory knows now.
func (m *model) look(i int) {
	n, all := &m.nodes[i], &m.pictures
	if all.latest == nil || all.tick != m.ticks {
		all.latest, all.tick = all.empty(), m.ticks
		all.latest.nodes = append(all.latest.nodes[:0], m.directory...)
	}
	if n.view == all.latest {
		return
	}
	if old := n.view; old != nil {
		if old.readers--; old.readers == 0 {
			all.free = append(all.free, old)
		}
	}
	n.view = all.latest
	n.view.readers++
}

func (p *pictures) empty() *picture {
	if last := len(p.free) - 1; last >= 0 {
		one := p.free[last]
		p.free = p.free[:last]
		return one
	}
	return &picture{}
}
