package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// maxChunk bounds the output in one event, so that no client needs a larger
// buffer than for the answer itself.
const maxChunk = 32 << 10

// events is an answer in text/event-stream. It is safe for concurrent use.
type events struct {
	c      *call
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	opened bool // guarded by mu
	broken bool // guarded by mu; the client does not read
}

// stream runs what feeds an event stream. The answer begins with the first
// event, or after a while; an error before that has a status of its own, and
// one after it is the last event. ctx ends when the client is gone or does not
// read.
func (c *call) stream(run func(ctx context.Context, e *events) error) error {
	ctx, cancel := context.WithCancelCause(c.r.Context())
	defer cancel(nil)
	e := &events{c: c, cancel: cancel}
	var beats sync.WaitGroup
	quit := make(chan struct{})
	beats.Go(func() { e.beat(quit) })
	// Also where run panics: nothing may write when the server has taken the
	// connection back.
	hush := sync.OnceFunc(func() { close(quit); beats.Wait() })
	defer hush()
	err := c.blame(run(ctx, e))
	hush()
	if err == nil {
		return nil
	}
	if !e.opened {
		return err
	}
	p := problemOf(err, c.id)
	c.note(err, p)
	e.write("event: "+wire.OnError+"\ndata: "+string(marshalProblem(p))+"\n", now)
	return nil
}

// beat says at intervals that the stream lives.
func (e *events) beat(quit <-chan struct{}) {
	next := time.NewTimer(e.c.api.OpenAfter)
	defer next.Stop()
	for {
		select {
		case <-quit:
			return
		case <-next.C:
			e.write(": alive\n\n", now)
			next.Reset(e.c.api.Heartbeat)
		}
	}
}

// urgency says whether an event must go out by itself.
type urgency bool

const (
	now   urgency = true
	later urgency = false // with the next ones, or with the next sign of life
)

// write sends text, which must be whole events, and ends the stream when the
// client takes nothing any more.
func (e *events) write(text string, when urgency) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.broken {
		return
	}
	if !e.opened {
		h := e.c.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("X-Accel-Buffering", "no")
		e.c.w.WriteHeader(http.StatusOK)
		e.opened = true
	}
	e.c.deadline()
	_, err := e.c.w.Write([]byte(text))
	if err == nil && when == now {
		err = e.c.control.Flush()
	}
	if err != nil {
		e.broken = true
		e.cancel(cove.Wrap(cove.Canceled, err, "the client does not read what it asked for"))
	}
}

// send sends one event. An empty id leaves the client's as it was.
func (e *events) send(name, id string, v any) error { return e.put(name, id, v, now) }

func (e *events) put(name, id string, v any, when urgency) error {
	data, err := json.Marshal(v)
	if err != nil {
		return cove.Wrap(cove.Internal, err, "the answer cannot be written; the log has the cause under the request id")
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	e.write(id+"event: "+name+"\ndata: "+string(data)+"\n\n", when)
	return nil
}

// chunk sends output; the id of its event is the offset after it, from which a
// client that lost the connection goes on.
func (e *events) chunk(c cove.Chunk) {
	name := wire.OnStdout
	if c.Stream == cove.Stderr {
		name = wire.OnStderr
	}
	for len(c.Data) > 0 {
		part := c
		part.Data = c.Data[:min(len(c.Data), maxChunk)]
		c.Data = c.Data[len(part.Data):]
		c.Offset += int64(len(part.Data))
		_ = e.send(name, strconv.FormatInt(c.Offset, 10), wire.ChunkOf(part)) // texts and numbers always are JSON
	}
}

// values sends each value that code shows, to who asked for them; nil otherwise.
func (e *events) values(asked bool) func(cove.Rich, bool) {
	if !asked {
		return nil
	}
	return func(v cove.Rich, main bool) {
		_ = e.send(wire.OnValue, "", wire.ValueOf(v, main)) // texts always are JSON
	}
}
