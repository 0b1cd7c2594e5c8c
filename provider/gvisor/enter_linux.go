package gvisor

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// streams are the pipes of a program that enters a sandbox. They are pipes and
// no sockets: a sandbox with an open pipe to us can be checkpointed.
type streams struct {
	in, out, errs           *os.File // theirs
	toIn, fromOut, fromErrs *os.File // ours
}

func newStreams() (*streams, error) {
	s := &streams{}
	var errs [3]error
	s.in, s.toIn, errs[0] = os.Pipe()
	s.fromOut, s.out, errs[1] = os.Pipe()
	s.fromErrs, s.errs, errs[2] = os.Pipe()
	if err := errors.Join(errs[:]...); err != nil {
		s.closeTheirs()
		s.closeOurs()
		_ = s.fromErrs.Close()
		return nil, err
	}
	return s, nil
}

func (s *streams) closeTheirs() {
	for _, f := range []*os.File{s.in, s.out, s.errs} {
		_ = f.Close()
	}
}

func (s *streams) closeOurs() {
	_ = s.toIn.Close()
	_ = s.fromOut.Close()
}

// wordPatience is how long what a program complains about may take to arrive.
const wordPatience = time.Second

// entered is a program that was given the streams. over ends what the runtime does
// for it here, which is not the program.
func (s *streams) entered(over func()) *entered {
	said := &saying{}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		_, _ = io.Copy(said, s.fromErrs) // until it is closed
	}()
	settle := sync.OnceFunc(func() {
		over()
		_ = s.fromErrs.Close()
		<-heard
	})
	return &entered{
		ReadWriteCloser: pipes{s.fromOut, s.toIn},
		errs: func() string {
			late := time.NewTimer(wordPatience)
			defer late.Stop()
			select {
			case <-heard:
			case <-late.C:
			}
			settle()
			return said.text()
		},
		settle: settle,
	}
}

// pipes is a link of two pipes.
type pipes struct {
	from *os.File
	to   *os.File
}

func (p pipes) Read(b []byte) (int, error)  { return p.from.Read(b) }
func (p pipes) Write(b []byte) (int, error) { return p.to.Write(b) }
func (p pipes) Close() error                { return errors.Join(p.from.Close(), p.to.Close()) }

// saying is the beginning of what somebody says; the rest is dropped.
type saying struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const mostSaid = 4 << 10

// Write implements [io.Writer].
func (s *saying) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.Write(b[:min(len(b), mostSaid-s.buf.Len())])
	return len(b), nil
}

func (s *saying) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(s.buf.String())
}
