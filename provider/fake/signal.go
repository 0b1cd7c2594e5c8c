package fake

import (
	"slices"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// signal sends to one process. It reports whether there was one.
func (m *machine) signal(p *proc, sig cove.Signal) bool {
	m.mu.Lock()
	if p.ended {
		m.mu.Unlock()
		return false
	}
	left := m.deliver(p, sig)
	m.mu.Unlock()
	left.bury()
	return true
}

// deliver does what a signal does and returns what is to be buried. Called with mu
// held.
func (m *machine) deliver(p *proc, sig cove.Signal) remains {
	switch {
	case sig == "KILL":
		return m.end(p, status{sig: sig})
	case sig == "CONT" && p.held != nil:
		close(p.held)
		p.held = nil
	}
	switch {
	case sig == "STOP":
		if p.held == nil {
			p.held = make(chan struct{})
		}
	case p.ignored[sig]:
	case p.caught[sig]:
		if !slices.Contains(p.pending, sig) {
			p.pending = append(p.pending, sig)
		}
		select {
		case p.poke <- struct{}{}:
		default:
		}
	case sig == "TSTP":
		if p.held == nil {
			p.held = make(chan struct{})
		}
	case sig == "CONT", sig == "WINCH":
	default:
		return m.end(p, status{sig: sig})
	}
	return remains{}
}

// find returns the process with a number.
func (m *machine) find(pid int) *proc {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.procs[pid]
}

// interrupt sends what a key of the terminal stands for to the programs that
// belong to it.
func (m *machine) interrupt(j *job, sig cove.Signal) {
	m.mu.Lock()
	var left []remains
	for _, p := range m.procs {
		if p.job == j && !p.detached {
			left = append(left, m.deliver(p, sig))
		}
	}
	m.mu.Unlock()
	for i := range left {
		left[i].bury()
	}
}

// brokenPipe is what a write without a reader gives.
func (p *proc) brokenPipe() error {
	p.m.signal(p, "PIPE")
	if p.over() {
		return errDead
	}
	return syscall.EPIPE
}

// handle sets what a signal does to p: ignore it, catch it, or the default.
func (p *proc) handle(sig cove.Signal, ignore, catch bool) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.ignored == nil {
		p.ignored = map[cove.Signal]bool{}
	}
	if p.caught == nil {
		p.caught = map[cove.Signal]bool{}
	}
	p.ignored[sig], p.caught[sig] = ignore, catch
}

// caughtSignals takes the signals that wait to be handled.
func (p *proc) caughtSignals() []cove.Signal {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	list := p.pending
	p.pending = nil
	return list
}

// caughtNow looks at the signals that wait, without taking them.
func (p *proc) caughtNow() []cove.Signal {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	return slices.Clone(p.pending)
}
