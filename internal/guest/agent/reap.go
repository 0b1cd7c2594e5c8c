//go:build linux

package agent

import (
	"context"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/forkexec"
)

// attend reaps children that end, also those that others left to us, until it
// is over. It has a thread of its own, so that an end is told while another
// program is being started.
func (s *server) attend() {
	var scratch []int
	for {
		pids := s.family.wait(scratch[:0])
		if len(pids) == 0 {
			return
		}
		scratch = pids
		s.procs.Lock()
		for _, pid := range pids {
			s.reap(pid)
		}
		alone := !s.family.blind() && len(s.family.strangers()) == 0
		if alone {
			s.family.bereaved = s.family.bereaved[:0] // they left nobody
		}
		s.procs.Unlock()
		if alone {
			s.tell()
		} else {
			s.sweep()
		}
	}
}

// reap takes a child that has ended out of the world, -1 means any, and reports
// whether there was one. It is called with procs held.
func (s *server) reap(pid int) bool {
	var status unix.WaitStatus
	var usage unix.Rusage
	pid, err := unix.Wait4(pid, &status, unix.WNOHANG, &usage)
	if err != nil || pid <= 0 {
		return false
	}
	starved := s.pressure.victims[pid]
	delete(s.pressure.victims, pid)
	for _, id := range s.family.remove(pid) {
		if p := s.programs[id]; p != nil && p.pid == pid {
			delete(s.programs, id)
			p.unguard()
			how := protocol.Exited{
				Status: uint32(status),
				CPU:    (usage.Utime.Sec+usage.Stime.Sec)*1e6 + usage.Utime.Usec + usage.Stime.Usec,
				MaxRSS: usage.Maxrss, Starved: starved,
			}
			s.ended = append(s.ended, end{p, how})
			if k := s.kept[p.keep]; k != nil && k.id == id {
				k.end(how)
			}
		}
	}
	return true
}

// sweep reaps all that have ended, while none is being started, and finds out
// whose the orphans are before anybody hears of an end: who does may start
// programs that leave others.
func (s *server) sweep() {
	s.forks.Lock()
	s.procs.Lock()
	for s.reap(-1) {
	}
	s.family.adopt()
	s.procs.Unlock()
	s.forks.Unlock()
	s.tell()
}

// end is a program that has ended, and how.
type end struct {
	*program

	how protocol.Exited
}

// tell tells the host of ends, and ends the streams that are copied.
func (s *server) tell() {
	s.procs.Lock()
	all := s.ended
	s.ended = nil
	s.procs.Unlock()
	for _, e := range all {
		_ = s.link.Send(&protocol.Message{Kind: protocol.KindExited, ID: e.id, Body: e.how.Encode()})
		for _, o := range e.outputs {
			o.Finish()
		}
		e.held.finish()
		if e.tty >= 0 {
			_ = unix.Close(e.tty)
		}
	}
}

// kill ends a program with all that it started, also what it left behind when
// it ended. It answers when they are gone.
func (s *server) kill(m *protocol.Message) {
	poke, err := protocol.DecodePoke(m.Body)
	if err != nil {
		s.malformed(m)
		return
	}
	if s.killAll(func(c child) bool { return slices.Contains(c.owners, poke.Program) }, os.Getpid() == 1) {
		s.reply(m.ID, protocol.Reply{})
		return
	}
	s.reply(m.ID, protocol.Reply{Errno: uint32(unix.EBUSY)})
}

// killAll ends children with all below them, and reports whether they are gone.
// doomed is asked with procs held. Without /proc it ends everything if it may.
func (s *server) killAll(doomed func(child) bool, everything bool) bool {
	const rounds = 100 // orphans of what was killed appear with us
	for range rounds {
		s.sweep()
		s.procs.Lock()
		var roots []int
		for pid, c := range s.family.children {
			if doomed(c) {
				roots = append(roots, pid)
			}
		}
		s.procs.Unlock()
		if len(roots) == 0 {
			return true
		}
		if err := forkexec.KillTree(context.Background(), roots...); err != nil {
			killBlindly(roots, everything)
		}
	}
	return false
}

// killBlindly ends processes that cannot be looked for, without /proc: the first
// process of a sandbox ends all others, since who left his group might belong to
// them; anybody else can go only as far as groups go. Each has a second to be
// gone.
func killBlindly(roots []int, everything bool) {
	if everything {
		_ = unix.Kill(-1, unix.SIGKILL)
	}
	for _, pid := range roots {
		_ = unix.Kill(-pid, unix.SIGKILL)
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	for _, pid := range roots {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // reaped
		}
		const patience = 1000                                                           // milliseconds
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, patience) //nolint:gosec // a descriptor
		_ = unix.Close(fd)
	}
}
