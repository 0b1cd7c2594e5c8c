//go:build linux

package warden

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

// Handler does what a warden is asked for. Methods are called side by side. A
// sandbox that is not there is [os.ErrNotExist], and no error for Remove.
type Handler interface {
	// Enter starts a program and does not wait for it. It does not close the streams.
	Enter(id string, p Program, s Streams) error
	Pause(id string) error
	Resume(id string) error
	// Checkpoint writes the memory of a sandbox, which goes on, into a directory.
	Checkpoint(id, image string) error
	// Remove ends a sandbox, whatever state it is in and whatever else is asked of it.
	Remove(id string) error
}

// maxCalls is how many calls, other than to remove it, may wait for one sandbox.
const maxCalls = 8

var errBusy = errors.New("too many calls wait for this sandbox")

// Serve answers what comes over a connection until that ends, which is no error.
func Serve(conn *net.UnixConn, h Handler) error {
	s := &server{conn: conn, handler: h, calls: map[string]int{}}
	buf := make([]byte, maxMessage+1)
	for {
		var r request
		files, err := receive(conn, buf, &r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			closeAll(files)
			return err
		}
		if err := s.begin(r); err != nil {
			closeAll(files)
			s.answer(r.ID, err)
			continue
		}
		go func() {
			defer closeAll(files)
			err := s.do(r, files)
			s.end(r)
			s.answer(r.ID, err)
		}()
	}
}

// server is the warden's end of a connection.
type server struct {
	conn    *net.UnixConn
	handler Handler
	writing sync.Mutex

	mu    sync.Mutex
	calls map[string]int // that wait for a sandbox
}

func (s *server) begin(r request) error {
	if r.Verb == remove {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[r.Sandbox] >= maxCalls {
		return errBusy
	}
	s.calls[r.Sandbox]++
	return nil
}

func (s *server) end(r request) {
	if r.Verb == remove {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[r.Sandbox]--; s.calls[r.Sandbox] == 0 {
		delete(s.calls, r.Sandbox)
	}
}

// do makes the call that a request is.
func (s *server) do(r request, files []*os.File) error {
	switch r.Verb {
	case enter:
		if r.Program == nil || len(r.Program.Argv) == 0 || len(files) != maxFiles {
			return errShape
		}
		return s.handler.Enter(r.Sandbox, *r.Program, Streams{In: files[0], Out: files[1], Err: files[2]})
	case pause:
		return s.handler.Pause(r.Sandbox)
	case resume:
		return s.handler.Resume(r.Sandbox)
	case checkpoint:
		return s.handler.Checkpoint(r.Sandbox, r.Image)
	case remove:
		return s.handler.Remove(r.Sandbox)
	}
	return fmt.Errorf("%w: nobody knows how to %q", errShape, r.Verb)
}

// answer says how a call ended. If nobody listens any more, the end of the
// connection says that too.
func (s *server) answer(id uint64, err error) {
	a := answer{ID: id}
	if err != nil {
		a.Gone = errors.Is(err, os.ErrNotExist)
		a.Fault = Brief(err.Error())
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = send(s.conn, a)
}
