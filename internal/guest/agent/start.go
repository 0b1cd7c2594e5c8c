//go:build linux

package agent

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/forkexec"
)

// program is one that runs.
type program struct {
	id      uint64
	keep    string // its name, if it outlives its host
	pid     int
	tty     int                // the terminal, for its size; -1 without
	outputs []*protocol.Stream // only to finish them
	held    *held              // its streams, if they are ours
	guard   func()             // closes its input; nil if nothing is held of it
}

// start runs a program and answers. Everything that goes wrong is in the reply.
func (s *server) start(m *protocol.Message) {
	req, err := protocol.DecodeStart(m.Body)
	if err != nil || req.Stdio.Streams() != len(m.Streams) || req.Stdio&protocol.TTY != 0 && len(m.Streams) > 0 {
		s.malformed(m)
		return
	}
	p := &program{id: m.ID, keep: req.Keep, tty: -1}
	files := [3]int{s.null, s.null, s.null}
	next := 0
	for i, bit := range []protocol.Stdio{protocol.Stdin, protocol.Stdout, protocol.Stderr} {
		if req.Stdio&bit == 0 {
			continue
		}
		files[i] = m.Streams[next].FD()
		if i > 0 {
			p.outputs = append(p.outputs, m.Streams[next])
		}
		next++
		if i == 0 {
			p.guard = m.Streams[0].Release
		}
		if i == 0 && req.Stdio&protocol.Guarded != 0 {
			p.guard = protocol.NewStream(m.Streams[next].Take(), protocol.Writable).Close
			next++
		}
	}
	if req.Stdio&protocol.Merged != 0 {
		files[2] = files[1]
	}
	var attached []*protocol.Stream
	if req.Stdio&protocol.TTY != 0 {
		t, err := openTerminal(req.Cols, req.Rows)
		if err != nil {
			s.reply(m.ID, failure(err))
			return
		}
		defer func() { _ = unix.Close(t.slave) }()
		files = [3]int{t.slave, t.slave, t.slave}
		p.tty = t.keep
		attached = append(attached, protocol.NewStream(t.master, protocol.Duplex))
		p.outputs = attached // others may hold the terminal when the program has ended
	}
	if err := s.launch(p, &req, files, attached); err != nil {
		p.unguard()
		if s.stillborn(p, req.Argv[0], err, files[2], attached) {
			return
		}
		if p.tty >= 0 {
			_ = unix.Close(p.tty)
			attached[0].Close()
		}
		s.reply(m.ID, failure(err))
	}
}

// unguard closes the input. It is called with procs held, or before other goroutines know
// the program.
func (p *program) unguard() {
	if p.guard != nil {
		p.guard()
		p.guard = nil
	}
}

// launch forks and answers that it did.
func (s *server) launch(p *program, req *protocol.Start, files [3]int, attached []*protocol.Stream) error {
	path, confined, err := s.resolve(req)
	if err != nil {
		return err
	}
	if confined != nil {
		defer func() { _ = unix.Close(confined.Ruleset) }()
	}
	c := forkexec.Command{
		Path: path, Argv: req.Argv, Env: req.Env, Dir: req.Dir, Files: files[:],
		Group: true, Terminal: p.tty >= 0, Reaper: true, Limits: []forkexec.Limit{filesOf(s.files, req)},
		User: s.user, Confinement: confined,
	}
	if n := req.Processes; n > 0 {
		most := uint64(n)
		if s.user == 0 {
			most += ownThreads() // which are the same user's
		}
		c.Limits = append(c.Limits, forkexec.Limit{Resource: unix.RLIMIT_NPROC, Soft: most, Hard: most})
	}
	if s.crowded() || !s.keepable(p.keep) {
		return &failed{protocol.ReasonBusy, unix.EAGAIN, "programs"}
	}
	s.forks.Lock()
	defer s.forks.Unlock()
	var pid, handle int
	err = s.offer.during(func() (err error) {
		pid, handle, err = forkexec.StartHandled(&c)
		return err
	})
	if err != nil {
		return startError(err, req.Argv[0])
	}
	p.pid = pid
	s.procs.Lock()
	s.programs[p.id] = p
	if p.keep != "" {
		s.kept[p.keep] = &kept{id: p.id, since: time.Now(), held: p.held}
	}
	s.family.add(pid, child{owners: []uint64{p.id}, handle: handle})
	s.pressure.arouse()
	wakeWatch(s.begun)
	s.procs.Unlock()
	s.reply(p.id, protocol.Reply{}, attached...)
	// Only now, so that the end cannot overtake the reply.
	if s.family.watch(pid, handle) != nil {
		s.procs.Lock()
		s.family.lose(pid)
		s.procs.Unlock()
	}
	return nil
}

// resolve finds the executable of a request, and what the request's list means.
func (s *server) resolve(req *protocol.Start) (string, *forkexec.Confinement, error) {
	if req.Programs == nil {
		path, err := lookPath(req.Argv[0], req.Dir, req.Env)
		return path, nil, err
	}
	c, err := s.lists.of(req.Programs, req.Env)
	if err != nil {
		return "", nil, err
	}
	path, err := c.find(req.Argv[0])
	if err != nil {
		return "", nil, err
	}
	confined, err := c.open()
	return path, confined, err
}

// ownThreads is how many threads we have, which the kernel counts with the
// processes of the programs: they are of the same user. We do not have the
// limit ourselves, so that no program can keep us from making another thread.
func ownThreads() uint64 {
	const guess = 8
	var st unix.Stat_t
	if unix.Stat("/proc/self/task", &st) != nil || st.Nlink < 3 {
		return guess
	}
	return uint64(st.Nlink) - 2 //nolint:unconvert // 32 bits on some machines
}

// crowded reports whether as many programs run as may. Zombies that nobody was
// told of do not count, nor do they take the place of a new one.
func (s *server) crowded() bool {
	s.procs.Lock()
	full, blind := len(s.programs) >= maxPrograms, s.family.blind()
	s.procs.Unlock()
	if blind {
		s.sweep()
	}
	return full
}

func startError(err error, name string) error {
	e, ok := errors.AsType[*forkexec.Error](err)
	if !ok {
		return err
	}
	switch e.Stage { //nolint:exhaustive // the others have no reason of their own
	case forkexec.StageDirectory:
		return &failed{protocol.ReasonDir, e.Errno, ""}
	case forkexec.StageExec:
		return &failed{protocol.ReasonExec, e.Errno, name}
	}
	return &failed{protocol.ReasonNone, e.Errno, ""}
}

// openFiles is the usual limit of programs, many of which cannot deal with more.
// Go raises its own for the agent, and they would inherit that. Who wants more
// can have half of the agent's: the kernel counts descriptors on their way
// through sockets by user, and programs must leave the agent some.
func openFiles() forkexec.Limit {
	const usual = 1024
	l := forkexec.Limit{Resource: unix.RLIMIT_NOFILE, Soft: usual, Hard: usual}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err == nil {
		l.Soft = min(usual, own.Max)
		l.Hard = max(l.Soft, own.Max/2)
	}
	return l
}

// filesOf is a limit for programs of a sandbox with so many processes.
func filesOf(l forkexec.Limit, req *protocol.Start) forkexec.Limit {
	l.Hard = max(l.Soft, linux.OpenFiles(int(req.Processes), l.Hard))
	return l
}

// find returns a program that runs, with procs held.
func (s *server) find(m *protocol.Message) (*program, protocol.Poke, bool) {
	poke, err := protocol.DecodePoke(m.Body)
	if err != nil {
		s.malformed(m)
		return nil, poke, false
	}
	p := s.programs[poke.Program]
	if p == nil {
		s.reply(m.ID, protocol.Reply{Reason: protocol.ReasonNoEntry})
	}
	return p, poke, p != nil
}

// signal sends to the program alone. It is ours to reap, so that its number
// cannot belong to another.
func (s *server) signal(m *protocol.Message) {
	s.procs.Lock()
	defer s.procs.Unlock()
	if p, poke, ok := s.find(m); ok {
		s.reply(m.ID, failure(unix.Kill(p.pid, syscall.Signal(poke.Signal))))
	}
}

func (s *server) resize(m *protocol.Message) {
	s.procs.Lock()
	defer s.procs.Unlock()
	p, poke, ok := s.find(m)
	if !ok {
		return
	}
	if p.tty < 0 {
		s.reply(m.ID, protocol.Reply{Reason: protocol.ReasonNoTTY})
		return
	}
	size := unix.Winsize{Col: poke.Cols, Row: poke.Rows}
	s.reply(m.ID, failure(unix.IoctlSetWinsize(p.tty, unix.TIOCSWINSZ, &size)))
}
