//go:build linux

package agent

import (
	"context"
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/forkexec"
)

// reap waits for children, also those that others left to us, for as long as
// the process lives. It holds a thread: nothing wakes up sooner.
func (s *server) reap() {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil)
		s.procs.Lock()
		switch {
		case errors.Is(err, unix.ECHILD):
			// Orphans can only come from our children, so there is nobody to
			// miss until the next start, which may have happened just now.
			if len(s.children) == 0 {
				s.born.Wait()
			}
		case err == nil:
			s.bury()
		}
		s.procs.Unlock()
	}
}

// bury reaps all that have ended, and finds out who their orphans belong to.
func (s *server) bury() {
	var parents []uint64 // the programs whose processes ended
	for {
		var status unix.WaitStatus
		var usage unix.Rusage
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, &usage)
		if err != nil || pid <= 0 {
			break
		}
		owners := s.children[pid]
		delete(s.children, pid)
		parents = append(parents, owners...)
		for _, id := range owners {
			if p := s.programs[id]; p != nil && p.pid == pid {
				s.exited(p, status, &usage)
			}
		}
	}
	s.adopt(parents)
}

// adopt gives the children that we did not know to the programs whose processes
// ended just now: only those can have left them. When several ended at once it
// cannot be told whose they are, and killing any of them kills the orphan.
func (s *server) adopt(parents []uint64) {
	if len(parents) == 0 {
		return
	}
	all, err := forkexec.Children(os.Getpid())
	if err != nil {
		return
	}
	slices.Sort(parents)
	parents = slices.Compact(parents)
	for _, pid := range all {
		if _, known := s.children[pid]; !known {
			s.children[pid] = parents
		}
	}
}

// exited tells the host, and ends the streams that are copied.
func (s *server) exited(p *program, status unix.WaitStatus, usage *unix.Rusage) {
	delete(s.programs, p.id)
	x := protocol.Exited{
		Status: uint32(status),
		CPU:    (usage.Utime.Sec+usage.Stime.Sec)*1e6 + usage.Utime.Usec + usage.Stime.Usec,
		MaxRSS: usage.Maxrss,
	}
	_ = s.link.Send(&protocol.Message{Kind: protocol.KindExited, ID: p.id, Body: x.Encode()})
	for _, o := range p.outputs {
		o.Finish()
	}
	if p.tty >= 0 {
		_ = unix.Close(p.tty)
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
	const rounds = 100 // orphans of what was killed appear with us
	for range rounds {
		s.procs.Lock()
		var roots []int
		for pid, owners := range s.children {
			if slices.Contains(owners, poke.Program) {
				roots = append(roots, pid)
			}
		}
		s.procs.Unlock()
		if len(roots) == 0 {
			s.reply(m.ID, protocol.Reply{})
			return
		}
		if err := forkexec.KillTree(context.Background(), roots...); err != nil {
			for _, pid := range roots { // no /proc: as far as a group goes
				_ = unix.Kill(-pid, unix.SIGKILL)
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		s.await()
	}
	s.reply(m.ID, protocol.Reply{Errno: uint32(unix.EBUSY)})
}

// await reaps, in case the reaper has not come to it yet.
func (s *server) await() {
	s.procs.Lock()
	defer s.procs.Unlock()
	s.bury()
}
