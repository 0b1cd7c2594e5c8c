//go:build linux

package agent

import (
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// take makes a child that the host put below us one of the programs. Its streams are
// its own and the host's already.
func (s *server) take(m *protocol.Message) {
	poke, err := protocol.DecodePoke(m.Body)
	if err != nil || len(m.Streams) > 0 {
		s.malformed(m)
		return
	}
	if err := s.takeChild(m.ID, int(poke.Program)); err != nil { //nolint:gosec // what is no pid is no child
		s.reply(m.ID, failure(err))
	}
}

func (s *server) takeChild(id uint64, pid int) error {
	if s.crowded() {
		return &failed{protocol.ReasonBusy, unix.EAGAIN, "programs"}
	}
	s.forks.Lock()
	defer s.forks.Unlock()
	// Nobody's child but ours, and not one that has ended.
	var info unix.Siginfo
	if pid <= 1 {
		return unix.ECHILD
	}
	if err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
		return err
	}
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	s.procs.Lock()
	if !s.family.disown(pid) {
		s.procs.Unlock()
		_ = unix.Close(handle)
		return unix.EEXIST
	}
	s.programs[id] = &program{id: id, pid: pid, tty: -1}
	s.family.add(pid, child{owners: []uint64{id}, handle: handle})
	wakeWatch(s.begun)
	s.procs.Unlock()
	s.reply(id, protocol.Reply{})
	// Only now, so that the end cannot overtake the reply.
	if s.family.watch(pid, handle) != nil {
		s.procs.Lock()
		s.family.lose(pid)
		s.procs.Unlock()
	}
	return nil
}
