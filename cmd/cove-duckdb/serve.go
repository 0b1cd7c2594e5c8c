//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cove-sandbox/cove/cmd/cove-duckdb/duck"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// errBroken ends the program: the engine has lost its footing, and the next process
// will do better.
var errBroken = errors.New("the engine cannot go on")

// serve answers requests until there are no more, which is no error.
func serve(r io.Reader, w io.Writer, s *session) error {
	waiting := make(chan ask.Request, ask.MaxWaiting)
	reading := make(chan error, 1)
	go func() {
		reading <- listen(r, waiting, s)
		close(waiting)
	}()
	for request := range waiting {
		answer := s.answer(&request)
		if err := write(w, answer); err != nil {
			return err
		}
		if s.broken {
			return errBroken
		}
	}
	return <-reading
}

// listen hands over requests as they come; stop it does itself, at once.
func listen(r io.Reader, waiting chan<- ask.Request, s *session) error {
	for {
		var request ask.Request
		if err := ask.Read(r, &request); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("request: %w", err)
		}
		if request.Verb == ask.VerbStop && request.Check() == nil {
			s.work.stop(request.Stop.ID)
			continue
		}
		select {
		case waiting <- request:
		default:
			return fmt.Errorf("more than %d requests wait", ask.MaxWaiting)
		}
	}
}

func write(w io.Writer, answer *ask.Answer) error {
	err := ask.Write(w, answer)
	if errors.Is(err, ask.ErrTooLarge) {
		fault := &ask.Fault{Kind: ask.Large, Message: "the answer is too large"}
		err = ask.Write(w, ask.Answer{ID: answer.ID, Fault: fault, Nanoseconds: answer.Nanoseconds})
	}
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// answer serves one request.
func (s *session) answer(request *ask.Request) *ask.Answer {
	start := time.Now()
	answer := &ask.Answer{}
	if err := s.serve(request, answer); err != nil {
		answer = &ask.Answer{Fault: faultOf(err, request)}
		if s.work.end() {
			answer.Fault = &ask.Fault{Kind: ask.Stopped, Message: "it was stopped"}
		}
		s.broken = s.broken || answer.Fault.Kind == ask.Internal
		if answer.Fault.Kind == ask.Memory {
			duck.Trim()
		}
	}
	s.work.end()
	answer.ID = request.ID
	answer.Nanoseconds = time.Since(start).Nanoseconds()
	return answer
}
