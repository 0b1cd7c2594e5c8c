package e2bapi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// unary makes a call of one message and returns its status and answer.
func (r *rig) unary(id cove.ID, method, message string, header ...string) (status int, body string) {
	r.t.Helper()
	req := r.inside(r.t.Context(), id, 49983, http.MethodPost, method, strings.NewReader(message), append([]string{"Content-Type", "application/json"}, header...)...)
	status, body, _ = r.read(req)
	return status, body
}

// patience is how long a stream may take before a test gives up on it.
const patience = time.Minute

// streamed is an answer in frames, being read.
type streamed struct {
	t    *testing.T
	resp *http.Response
}

// event is what one frame holds.
type event struct {
	Event struct {
		Start     *struct{ PID int }
		Data      *struct{ Stdout, Stderr, PTY []byte }
		End       *endSeen
		Keepalive *struct{}
	}
	Error *struct{ Code, Message string }
	last  bool
}

type endSeen struct {
	ExitCode int
	Exited   bool
	Status   string
	Error    string
}

// stream makes a call whose answer is frames.
func (r *rig) stream(ctx context.Context, id cove.ID, method, message string, header ...string) *streamed {
	r.t.Helper()
	return r.streamOf(ctx, id, method, bytes.NewReader(framed(0, message)), header...)
}

func (r *rig) streamOf(ctx context.Context, id cove.ID, method string, body io.Reader, header ...string) *streamed {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	r.t.Cleanup(cancel)
	req := r.inside(ctx, id, 49983, http.MethodPost, method, body, append([]string{"Content-Type", "application/connect+json"}, header...)...)
	resp := r.do(req)
	r.t.Cleanup(func() { resp.Body.Close() })
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != "application/connect+json" {
		text, _ := io.ReadAll(resp.Body)
		r.t.Fatalf("the answer is %s, %s: %s", resp.Status, got, text)
	}
	return &streamed{r.t, resp}
}

// next reads one frame.
func (s *streamed) next() event {
	s.t.Helper()
	var head [5]byte
	if _, err := io.ReadFull(s.resp.Body, head[:]); err != nil {
		s.t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint32(head[1:]))
	if _, err := io.ReadFull(s.resp.Body, body); err != nil {
		s.t.Fatal(err)
	}
	e := event{last: head[0] == 2}
	if err := json.Unmarshal(body, &e); err != nil {
		s.t.Fatalf("%s: %v", body, err)
	}
	return e
}

// began reads the first frame, which has the number of the program.
func (s *streamed) began() int {
	s.t.Helper()
	e := s.next()
	if e.Event.Start == nil {
		s.t.Fatalf("the first frame is %+v", e)
	}
	return e.Event.Start.PID
}

// outcome is a stream read to its end.
type outcome struct {
	pid                 int
	stdout, stderr, pty string
	end                 *endSeen
	code, message       string // of the error in the last frame
	pieces, keepalives  int
	longest             int
}

// all reads a stream to its end.
func (s *streamed) all() (o outcome) {
	s.t.Helper()
	for {
		e := s.next()
		switch {
		case e.last:
			if e.Error != nil {
				o.code, o.message = e.Error.Code, e.Error.Message
			}
			if n, err := s.resp.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				s.t.Errorf("after the last frame come %d bytes and %v", n, err)
			}
			return o
		case e.Event.Start != nil:
			o.pid = e.Event.Start.PID
		case e.Event.Data != nil:
			d := e.Event.Data
			o.stdout, o.stderr, o.pty = o.stdout+string(d.Stdout), o.stderr+string(d.Stderr), o.pty+string(d.PTY)
			o.pieces++
			o.longest = max(o.longest, len(d.Stdout), len(d.Stderr), len(d.PTY))
		case e.Event.End != nil:
			o.end = e.Event.End
		case e.Event.Keepalive != nil:
			o.keepalives++
		default:
			s.t.Fatalf("a frame says nothing: %+v", e)
		}
	}
}

// until reads output until it holds a text.
func (s *streamed) until(text string) string {
	s.t.Helper()
	var got string
	for !strings.Contains(got, text) {
		e := s.next()
		if e.last || e.Event.End != nil {
			s.t.Fatalf("the program ended, and wrote only %q", got)
		}
		if d := e.Event.Data; d != nil {
			got += string(d.Stdout) + string(d.Stderr) + string(d.PTY)
		}
	}
	return got
}

const startCall = "/process.Process/Start"

// run starts a line as their clients do.
func (r *rig) run(id cove.ID, line string, header ...string) *streamed {
	r.t.Helper()
	return r.stream(r.t.Context(), id, startCall, bash(line, `"stdin":false`), header...)
}

// bash is the message for a line, with more fields.
func bash(line string, more ...string) string {
	text, _ := json.Marshal(line)
	return `{"process":{"cmd":"/bin/bash","args":["-l","-c",` + string(text) + `]}` + strings.Join(append([]string{""}, more...), ",") + `}`
}
