//go:build linux

package agent

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// hold is start for a program whose streams stay with us.
func (s *server) hold(m *protocol.Message) {
	req, err := protocol.DecodeHold(m.Body)
	if err != nil || len(m.Streams) > 0 {
		s.malformed(m)
		return
	}
	p := &program{id: m.ID, keep: req.Keep, tty: -1}
	files, err := s.furnish(p, &req)
	defer func() {
		for _, fd := range files {
			if fd >= 0 && fd != s.null {
				_ = unix.Close(fd)
			}
		}
	}()
	var attached []*protocol.Stream
	if err == nil && req.Stdio&protocol.Stdin != 0 {
		attached, err = p.held.input()
	}
	if err == nil {
		place := files
		if req.Stdio&protocol.Merged != 0 || p.tty >= 0 {
			place = [3]int{files[0], files[1], files[1]}
		}
		if p.tty >= 0 {
			place[0] = files[1]
		}
		if err = s.launch(p, &req.Start, place, attached); err != nil && s.stillborn(p, req.Argv[0], err, place[2], attached) {
			return
		}
	}
	if err != nil {
		p.held.forget()
		if p.tty >= 0 {
			_ = unix.Close(p.tty)
		}
		for _, st := range attached {
			st.Close()
		}
		s.reply(m.ID, failure(err))
	}
}

// furnish makes the streams of a program and begins to hold our ends of them. It
// returns the program's, which the caller closes, whatever is returned; -1 is none.
func (s *server) furnish(p *program, req *protocol.Hold) ([3]int, error) {
	files := [3]int{s.null, s.null, s.null}
	t := newTape(&s.room, req.Most)
	if req.Stdio&protocol.TTY != 0 {
		term, err := openTerminal(req.Cols, req.Rows)
		if err != nil {
			return files, err
		}
		// Two files, so that closing the input is not the end of the output.
		out, err := unix.FcntlInt(uintptr(term.master), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			_, _ = unix.Close(term.master), unix.Close(term.keep)
			return [3]int{s.null, term.slave, s.null}, err
		}
		p.tty = term.keep
		p.held = newHeld(req.Note, t, pollable(term.master), pollable(out), nil)
		return [3]int{s.null, term.slave, s.null}, nil
	}
	var mine [3]*os.File
	for i, bit := range []protocol.Stdio{protocol.Stdin, protocol.Stdout, protocol.Stderr} {
		if req.Stdio&bit == 0 {
			continue
		}
		flow := protocol.Writable
		if i == 0 {
			flow = protocol.Readable
		}
		f, st, err := protocol.Pipe(flow)
		if err != nil {
			for _, f := range mine {
				if f != nil {
					_ = f.Close()
				}
			}
			return files, err
		}
		mine[i], files[i] = f, st.Take()
	}
	p.held = newHeld(req.Note, t, mine[0], mine[1], mine[2])
	return files, nil
}

// asked returns the streams of a program that is kept, and answers if there are
// none.
func (s *server) asked(m *protocol.Message, streams int) *held {
	poke, err := protocol.DecodePoke(m.Body)
	if err != nil || len(m.Streams) != streams {
		s.malformed(m)
		return nil
	}
	s.procs.Lock()
	defer s.procs.Unlock()
	for _, k := range s.kept {
		if k.id == poke.Program && k.held != nil {
			return k.held
		}
	}
	s.reply(m.ID, protocol.Reply{Reason: protocol.ReasonNoEntry})
	return nil
}

// follow writes what a program wrote and writes to a stream.
func (s *server) follow(m *protocol.Message) {
	h := s.asked(m, 1)
	if h == nil {
		return
	}
	poke, err := protocol.DecodePoke(m.Body)
	f := h.tape.join(err == nil && poke.Signal == protocol.Alone)
	if f == nil {
		s.reply(m.ID, protocol.Reply{Reason: protocol.ReasonBusy})
		return
	}
	over := m.Streams[0].Over()
	to := m.Streams[0].File("follower")
	s.reply(m.ID, protocol.Reply{})
	go func() {
		defer h.tape.leave(f)
		defer func() { _ = to.Close() }()
		for {
			lost, b, end, ok := h.tape.next(f, over)
			if end {
				b = protocol.AppendRecord(nil, protocol.RecordEnd, nil)
			}
			if !ok {
				return
			}
			if len(lost) > 0 {
				if _, err := to.Write(lost); err != nil {
					return
				}
			}
			n := len(b)
			if !end {
				b = f.trim(b)
			}
			if _, err := to.Write(b); err != nil || end {
				return
			}
			h.tape.moved(f, n)
		}
	}()
}

// look answers with the input of a program, if there is any, and writes its note.
func (s *server) look(m *protocol.Message) {
	h := s.asked(m, 1)
	if h == nil {
		return
	}
	in, err := h.input()
	if err != nil {
		s.reply(m.ID, failure(err))
		return
	}
	to := m.Streams[0].File("note")
	s.reply(m.ID, protocol.Reply{}, in...)
	go func() {
		defer func() { _ = to.Close() }()
		h.mu.Lock()
		b := protocol.AppendRecord(nil, protocol.RecordData, h.note)
		h.mu.Unlock()
		_, _ = to.Write(protocol.AppendRecord(b, protocol.RecordEnd, nil)) // who is gone does not look
	}()
}

// shut ends the input of a program.
func (s *server) shut(m *protocol.Message) {
	if poke, err := protocol.DecodePoke(m.Body); err == nil && s.unguard(poke.Program) {
		s.reply(m.ID, protocol.Reply{})
		return
	}
	if h := s.asked(m, 0); h != nil {
		h.shut()
		s.reply(m.ID, protocol.Reply{})
	}
}

// unguard closes the input of a program that ends with its host, and reports whether it
// was held.
func (s *server) unguard(id uint64) bool {
	s.procs.Lock()
	defer s.procs.Unlock()
	p := s.programs[id]
	if p == nil || p.guard == nil {
		return false
	}
	p.unguard()
	return true
}
