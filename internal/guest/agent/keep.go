//go:build linux

package agent

import (
	"cmp"
	"errors"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// kept is a program that outlives its host, and how it ended, until it is
// forgotten.
type kept struct {
	id    uint64
	since time.Time
	ended bool
	how   protocol.Exited
	wall  time.Duration
	held  *held // nil if somebody else has its streams
}

// end notes how it ended, with procs held.
func (k *kept) end(how protocol.Exited) {
	k.ended, k.how, k.wall = true, how, time.Since(k.since)
}

// keepable reports whether a program may have a name.
func (s *server) keepable(name string) bool {
	if name == "" {
		return true
	}
	s.procs.Lock()
	defer s.procs.Unlock()
	return s.kept[name] == nil && len(s.kept) < protocol.MaxKept
}

// stillborn makes a program that is to be kept and cannot be executed one that
// has ended, as a shell would say it: what is kept is the same for all hosts. It
// reports whether that is what the error is about.
func (s *server) stillborn(p *program, name string, err error, stderr int, attached []*protocol.Stream) bool {
	f, ok := errors.AsType[*failed](err)
	if p.keep == "" || !ok || f.reason != protocol.ReasonExec || !s.keepable(p.keep) {
		return false
	}
	code, why := uint32(126), f.errno.Error()
	if f.errno == syscall.ENOENT {
		code, why = 127, "not found"
	}
	// Less than a pipe that nobody has written to can hold.
	_, _ = unix.Write(stderr, []byte("cove: "+name[:min(len(name), protocol.MaxPath)]+": "+why+"\n"))
	k := &kept{id: p.id, since: time.Now(), held: p.held}
	k.end(protocol.Exited{Status: code << 8})
	s.procs.Lock()
	s.kept[p.keep] = k
	s.procs.Unlock()
	s.reply(p.id, protocol.Reply{}, attached...)
	s.procs.Lock()
	s.ended = append(s.ended, end{p, k.how})
	s.procs.Unlock()
	s.tell()
	return true
}

// mark makes a program that runs one that is kept, or says what of its output is not
// wanted again.
func (s *server) mark(m *protocol.Message) {
	req, err := protocol.DecodeMark(m.Body)
	if err != nil {
		s.malformed(m)
		return
	}
	s.procs.Lock()
	defer s.procs.Unlock()
	k := s.kept[req.Keep]
	p := s.programs[req.Program]
	switch {
	case k != nil && k.id == req.Program:
		k.held.mark(req)
	case k != nil || req.Keep == "" || len(s.kept) >= protocol.MaxKept:
		s.reply(m.ID, protocol.Reply{Reason: protocol.ReasonBusy})
		return
	case p == nil:
		s.reply(m.ID, protocol.Reply{Reason: protocol.ReasonNoEntry})
		return
	case s.kept[p.keep] != nil: // it gets another name, and begins anew with that
		s.kept[req.Keep] = s.kept[p.keep]
		delete(s.kept, p.keep)
		p.keep = req.Keep
		p.held.restart()
	default:
		p.keep = req.Keep
		s.kept[req.Keep] = &kept{id: p.id, since: time.Now(), held: p.held}
	}
	s.reply(m.ID, protocol.Reply{})
}

// listKept is what a host learns of the programs that are kept, after one of
// them. It is called with procs held.
func (s *server) listKept(g *protocol.Greeting, after uint64) {
	for name, k := range s.kept {
		if k.id > after {
			g.Kept = append(g.Kept, protocol.Kept{Keep: name, Program: k.id, Ended: k.ended, Exited: k.how, Wall: k.wall.Microseconds()})
		}
	}
	slices.SortFunc(g.Kept, func(a, b protocol.Kept) int { return cmp.Compare(a.Program, b.Program) })
	if g.More = len(g.Kept) > protocol.KeptPage; g.More {
		g.Kept = g.Kept[:protocol.KeptPage]
	}
}

// listMore answers with what follows.
func (s *server) listMore(m *protocol.Message) {
	poke, err := protocol.DecodePoke(m.Body)
	if err != nil {
		s.malformed(m)
		return
	}
	g := protocol.Greeting{Version: protocol.Version}
	s.procs.Lock()
	defer s.procs.Unlock()
	s.listKept(&g, poke.Program)
	s.reply(m.ID, protocol.Reply{Body: g.Encode()})
}

// forget makes a program one like all others, if it still runs. It may also be told
// to go on reading what the program writes.
func (s *server) forget(m *protocol.Message) {
	poke, err := protocol.DecodePoke(m.Body)
	if err != nil {
		s.malformed(m)
		return
	}
	s.procs.Lock()
	defer s.procs.Unlock()
	for name, k := range s.kept {
		if k.id == poke.Program {
			if poke.Signal == protocol.GoesOn && k.held.isMarked() {
				s.reply(m.ID, protocol.Reply{Reason: protocol.ReasonBusy})
				return
			}
			delete(s.kept, name)
			if poke.Signal != protocol.GoesOn {
				k.held.forget()
			}
		}
	}
	s.reply(m.ID, protocol.Reply{})
}

// left ends what a host that is gone leaves behind: all programs that are not
// kept. Files, watches and connections end by themselves, with their streams.
// Then comes what is wanted next, if anything is. What is started from now on is
// not touched.
func (s *server) left(next func()) {
	s.berths.left()
	s.link.Renew()
	s.sweep()
	s.procs.Lock()
	doomed := map[uint64]bool{}
	var guards []func()
	for id, p := range s.programs {
		if p.keep == "" {
			doomed[id] = true
			if p.guard != nil {
				guards = append(guards, p.guard)
				p.guard = nil
			}
		}
	}
	for _, c := range s.family.children {
		for _, id := range c.owners {
			doomed[id] = true
		}
	}
	for _, k := range s.kept {
		delete(doomed, k.id)
	}
	s.procs.Unlock()
	go func() {
		s.killAll(func(c child) bool { return s.isDoomed(c, doomed) }, false)
		for _, release := range guards { // no program is left that would take it for the end of the input
			release()
		}
		if next != nil {
			next()
		}
	}()
}

// isDoomed reports whether a child belongs to a program that is to end, and to
// none that is kept. It is called with procs held.
func (s *server) isDoomed(c child, doomed map[uint64]bool) bool {
	for _, k := range s.kept {
		if slices.Contains(c.owners, k.id) {
			return false
		}
	}
	return slices.ContainsFunc(c.owners, func(id uint64) bool { return doomed[id] })
}
