package e2bapi

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// streamWriter is an answer in frames. It is safe for concurrent use.
type streamWriter struct {
	c      *call
	cancel context.CancelCauseFunc // ends what feeds it
	quit   chan struct{}
	beats  sync.WaitGroup

	mu     sync.Mutex
	opened bool   // guarded by mu, as are all below
	broken error  // why nothing more goes out
	frames []byte // on their way; kept for its memory
	sent   time.Time
}

func newStreamWriter(c *call, cancel context.CancelCauseFunc) *streamWriter {
	return &streamWriter{c: c, cancel: cancel, quit: make(chan struct{})}
}

// send sends one message at once. The error is Canceled where the client is gone
// or takes nothing for the time of a stall.
func (s *streamWriter) send(v any) error { return s.put(v, true) }

// hold sends one message with the next one, or with the end.
func (s *streamWriter) hold(v any) error { return s.put(v, false) }

func (s *streamWriter) put(v any, now bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(0, v, now)
}

// end sends how the stream ended, as its last frame. After it nothing goes out.
func (s *streamWriter) end(err error) {
	last := struct {
		Error *rpcProblem `json:"error,omitempty"`
	}{}
	if err != nil {
		p := rpcProblemOf(err)
		last.Error = &p
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.write(flagEnd, last, true) // the client may be gone
	if s.broken == nil {
		s.broken = cove.Errorf(cove.Canceled, "the stream has ended")
	}
}

// streamFail answers a call in frames with an error, unless an answer has begun.
// Clients do not look into what comes with another status than 200.
func (c *call) streamFail(err error) {
	if c.w.status == 0 {
		newStreamWriter(c, func(error) {}).end(err)
	}
}

// close makes sure that nothing is written once the call is over.
func (s *streamWriter) close() {
	s.mu.Lock()
	if s.broken == nil {
		s.broken = cove.Errorf(cove.Canceled, "the call is over")
	}
	s.mu.Unlock()
	close(s.quit)
	s.beats.Wait()
}

// write sends a frame. The caller holds mu.
func (s *streamWriter) write(flags byte, v any, now bool) (err error) {
	if s.broken != nil {
		return s.broken
	}
	if s.frames, err = appendFrame(s.frames, flags, v); err != nil || !now {
		return err
	}
	if !s.opened {
		s.opened = true
		s.c.w.Header().Set("Content-Type", streamType)
		s.c.w.Header().Set("X-Accel-Buffering", "no")
		s.c.w.WriteHeader(http.StatusOK)
	}
	control := s.c.control()
	_ = control.SetWriteDeadline(time.Now().Add(s.c.h.cfg.Stall))
	_, err = s.c.w.Write(s.frames)
	if err == nil {
		err = control.Flush()
	}
	s.frames, s.sent = s.frames[:0], time.Now()
	if err != nil {
		s.broken = cove.Wrap(cove.Canceled, err, "the client does not read what it asked for")
		s.cancel(s.broken)
		return s.broken
	}
	return nil
}

// beat sends v from now on whenever the stream was silent for as long as the
// client asked, or the settings say, whichever is sooner. It is called once.
func (s *streamWriter) beat(v any) {
	every := s.c.h.cfg.Keepalive
	if n, err := strconv.Atoi(s.c.r.Header.Get("Keepalive-Ping-Interval")); err == nil && n > 0 && n < int(every/time.Second) {
		every = time.Duration(n) * time.Second
	}
	s.beats.Go(func() {
		next := time.NewTimer(every)
		defer next.Stop()
		for {
			select {
			case <-s.quit:
				return
			case <-next.C:
				next.Reset(s.remind(v, every))
			}
		}
	})
}

// remind sends v if nothing was sent for so long, and returns when to look again.
func (s *streamWriter) remind(v any, every time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := every - time.Since(s.sent); left > 0 {
		return left
	}
	_ = s.write(0, v, true) // a client that is gone ends the stream
	return every
}
