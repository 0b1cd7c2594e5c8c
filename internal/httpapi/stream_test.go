package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/httpapi"
	"github.com/cove-sandbox/cove/internal/wire"
)

// quick makes every interval of the API short.
func quick(c *httpapi.Config) {
	c.Heartbeat, c.OpenAfter, c.Stall, c.BodyTime, c.HangUp = 5*time.Millisecond, time.Millisecond, 200*time.Millisecond, 200*time.Millisecond, 5*time.Millisecond
}

const sse = "text/event-stream"

func TestExecuteAsEvents(t *testing.T) {
	r := serve(t)
	big := strings.Repeat("x", 70_000)
	r.fake.exec = func(_ context.Context, req cove.ExecRequest) (*cove.Execution, error) {
		req.OnOutput(cove.Chunk{Stream: cove.Stdout, Offset: 0, Data: []byte("hé\n")})
		req.OnOutput(cove.Chunk{Stream: cove.Stderr, Offset: 4, Data: []byte("\xff\n")})
		req.OnOutput(cove.Chunk{Stream: cove.Stdout, Offset: 6, Data: []byte(big)})
		return &cove.Execution{Result: cove.Result{Outcome: cove.Exited}}, nil
	}
	a := r.send("POST", "/api/sandboxes/x/execute", `{"command":"x"}`, "Accept", sse)
	if a.status != 200 || a.header.Get("Content-Type") != sse {
		t.Fatalf("%d %s", a.status, a.header.Get("Content-Type"))
	}
	events := strings.SplitAfter(a.body, "\n\n")
	for i, want := range []string{
		"id: 4\nevent: stdout\ndata: {\"offset\":0,\"data\":\"hé\\n\"}\n\n",
		"id: 6\nevent: stderr\ndata: {\"offset\":4,\"data_base64\":\"/wo=\"}\n\n",
		"id: 32774\nevent: stdout\ndata: {\"offset\":6,\"data\":\"xxx",
		"id: 65542\nevent: stdout\ndata: {\"offset\":32774,\"data\":\"xxx",
		"id: 70006\nevent: stdout\ndata: {\"offset\":65542,\"data\":\"xxx",
		"event: exit\ndata: {\"exit_code\":0,\"status\":\"success\",",
	} {
		if !strings.HasPrefix(events[i], want) {
			t.Errorf("event %d is %.80q, want %.80q", i, events[i], want)
		}
	}
	var got bytes.Buffer
	_, err := r.client.Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "x", OnOutput: func(c cove.Chunk) {
		if c.Offset != int64(got.Len()) {
			t.Errorf("a chunk at %d came after %d bytes", c.Offset, got.Len())
		}
		got.Write(c.Data)
	}})
	if err != nil || got.String() != "hé\n\xff\n"+big {
		t.Errorf("%d bytes came, %v", got.Len(), err)
	}
}

func TestErrorsOfStreams(t *testing.T) {
	r := serve(t)
	var begin bool
	r.fake.exec = func(_ context.Context, req cove.ExecRequest) (*cove.Execution, error) {
		if begin {
			req.OnOutput(cove.Chunk{Stream: cove.Stdout, Data: []byte("begun")})
		}
		return nil, cove.Errorf(cove.Exhausted, "full").Reason(cove.ReasonCapacity)
	}
	req := cove.ExecRequest{Line: "x", OnOutput: func(cove.Chunk) {}}
	a := r.send("POST", "/api/sandboxes/x/execute", `{"command":"x"}`, "Accept", sse)
	if a.status != 429 || a.problem(t).Reason != cove.ReasonCapacity {
		t.Errorf("an error before the first event: %d %q", a.status, a.body)
	}
	if _, err := r.client.Processes(id).Exec(t.Context(), req); cove.ReasonOf(err) != cove.ReasonCapacity {
		t.Errorf("%v", err)
	}
	begin = true
	a = r.send("POST", "/api/sandboxes/x/execute", `{"command":"x"}`, "Accept", sse)
	if a.status != 200 || !strings.Contains(a.body, "event: error\ndata: {\"type\":\"urn:cove:problem:exhausted\"") || !strings.HasSuffix(a.body, "\n\n") {
		t.Errorf("an error after it: %d %q", a.status, a.body)
	}
	if _, err := r.client.Processes(id).Exec(t.Context(), req); cove.ReasonOf(err) != cove.ReasonCapacity || !errors.Is(err, cove.Exhausted) {
		t.Errorf("%v", err)
	}
}

// TestHeartbeats: a silent stream opens by itself and shows that it lives.
func TestHeartbeats(t *testing.T) {
	r := serve(t, quick)
	r.fake.watch = func(ctx context.Context) iter.Seq2[cove.Change, error] {
		return func(func(cove.Change, error) bool) { <-ctx.Done() }
	}
	resp, err := r.server.Client().Do(r.request("GET", "/api/sandboxes/x/files/watch?path=.", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for range 3 {
		if line, err := lines.ReadString('\n'); err != nil || line != ": alive\n" {
			t.Fatalf("%q %v", line, err)
		}
		_, _ = lines.ReadString('\n')
	}
}

func TestQueue(t *testing.T) {
	r := serve(t)
	var places []int
	s, err := r.client.Sessions().Open(t.Context(), cove.OpenRequest{OnFull: cove.WaitWhenFull, OnQueue: func(n int) { places = append(places, n) }})
	if err != nil || s.ID == "" || !slices.Equal(places, []int{2, 1}) {
		t.Errorf("%v came with the places %v, %v", s, places, err)
	}
	r.fake.open = func(context.Context, cove.OpenRequest) (*cove.Session, error) {
		return nil, cove.Errorf(cove.Exhausted, "full").Reason(cove.ReasonQueueFull)
	}
	if _, err := r.client.Sessions().Open(t.Context(), cove.OpenRequest{OnFull: cove.WaitWhenFull, OnQueue: func(int) {}}); cove.ReasonOf(err) != cove.ReasonQueueFull {
		t.Error(err)
	}
}

func TestCodeAsEvents(t *testing.T) {
	r := serve(t)
	r.fake.run = func(_ context.Context, req cove.CodeRequest) (*cove.CodeResult, error) {
		if req.Code == "fail" {
			return nil, cove.Errorf(cove.Unsupported, "no such language")
		}
		req.OnOutput(cove.Chunk{Stream: cove.Stdout, Data: []byte("shown")})
		return &cove.CodeResult{Context: "c", Results: []cove.Rich{{"text/plain": "1"}}}, nil
	}
	var out string
	got, err := r.client.Contexts(id).Run(t.Context(), cove.CodeRequest{Language: "python", Code: "1", OnOutput: func(c cove.Chunk) { out += string(c.Data) }})
	if err != nil || got.Context != "c" || out != "shown" || got.Results[0]["text/plain"] != "1" {
		t.Errorf("%+v %q %v", got, out, err)
	}
	if _, err := r.client.Contexts(id).Run(t.Context(), cove.CodeRequest{Language: "x", Code: "fail", OnOutput: func(cove.Chunk) {}}); !errors.Is(err, cove.Unsupported) {
		t.Error(err)
	}
}

// until waits for the end of a method's context and tells why it ended.
func until(ctx context.Context, done chan<- error) error {
	<-ctx.Done()
	done <- context.Cause(ctx)
	return ctx.Err()
}

// TestCallerLeaves: a foreground program ends with its caller, whatever the
// form of its answer.
func TestCallerLeaves(t *testing.T) {
	never, typing := io.Pipe()
	defer typing.Close()
	for name, req := range map[string]cove.ExecRequest{
		"json":   {Line: "x"},
		"events": {Line: "x", OnOutput: func(cove.Chunk) {}},
		"stdin":  {Line: "x", Stdin: never},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t)
			running, done := make(chan struct{}), make(chan error, 1)
			r.fake.exec = func(ctx context.Context, _ cove.ExecRequest) (*cove.Execution, error) {
				close(running)
				return nil, until(ctx, done)
			}
			ctx, leave := context.WithCancel(t.Context())
			go func() {
				<-running
				leave()
			}()
			if _, err := r.client.Processes(id).Exec(ctx, req); !errors.Is(err, cove.Canceled) || !errors.Is(err, context.Canceled) {
				t.Errorf("Exec said %v", err)
			}
			<-done
		})
	}
}

func TestCallerOutOfTime(t *testing.T) {
	r := serve(t)
	r.fake.exec = func(ctx context.Context, _ cove.ExecRequest) (*cove.Execution, error) {
		return nil, until(ctx, make(chan error, 1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.client.Processes(id).Exec(ctx, cove.ExecRequest{Line: "x"}); !errors.Is(err, cove.Timeout) {
		t.Errorf("Exec said %v", err)
	}
}

func TestConnectFromAnOffset(t *testing.T) {
	r := serve(t)
	var got []int64
	r.fake.connect = func(_ context.Context, _ cove.PID, offset int64) iter.Seq2[cove.Chunk, error] {
		got = append(got, offset)
		return func(yield func(cove.Chunk, error) bool) {
			yield(cove.Chunk{Stream: cove.Stdout, Offset: offset, Data: []byte("ab")}, nil)
		}
	}
	a := r.send("GET", "/api/sandboxes/x/processes/3?offset=5", "")
	if !strings.HasPrefix(a.body, "id: 7\nevent: stdout\n") || !strings.Contains(a.body, "event: exit\ndata: {") {
		t.Errorf("%q", a.body)
	}
	r.send("GET", "/api/sandboxes/x/processes/3?offset=5", "", "Last-Event-ID", "7")
	if !slices.Equal(got, []int64{5, 7}) {
		t.Errorf("the program was followed from %v", got)
	}
	for _, c := range []struct{ path, last string }{{"3", "x"}, {"3", "-1"}, {"0", ""}, {"three", ""}, {"-1", ""}, {"99999999999999999999", ""}} {
		a := r.send("GET", "/api/sandboxes/x/processes/"+c.path, "", "Last-Event-ID", c.last)
		if a.status != 400 && a.status != 404 {
			t.Errorf("%+v: %d", c, a.status)
		}
	}
	for _, path := range []string{"wait", "input", "signal", "resize"} {
		method, body := "POST", `{}`
		if path == "wait" {
			method, body = "GET", ""
		}
		if a := r.send(method, "/api/sandboxes/x/processes/0/"+path, body); a.status != 404 {
			t.Errorf("%s of no process: %d", path, a.status)
		}
	}
	r.fake.wait = func(context.Context, cove.PID) (*cove.Execution, error) {
		return nil, cove.Errorf(cove.NotFound, "gone")
	}
	if a := r.send("GET", "/api/sandboxes/x/processes/3", ""); !strings.HasSuffix(a.body, "event: end\ndata: {}\n\n") {
		t.Errorf("a program nobody remembers: %q", a.body)
	}
	if n, err := length(r.client.Processes(id).Connect(t.Context(), 3, 0)); n != 1 || err != nil {
		t.Errorf("%d chunks, %v", n, err)
	}
}

func TestFollowTheJournal(t *testing.T) {
	r := serve(t)
	var asked []cove.EventFilter
	r.fake.events = func(ctx context.Context, f cove.EventFilter) iter.Seq2[cove.Event, error] {
		asked = append(asked, f)
		return func(yield func(cove.Event, error) bool) {
			for n := int64(1); ctx.Err() == nil; n++ {
				if !yield(cove.Event{Seq: f.After + n, Kind: "k"}, nil) {
					return
				}
			}
		}
	}
	var seqs []int64
	for e, err := range r.client.Admin().Events(t.Context(), cove.EventFilter{Follow: true, After: 7, Kind: "k", Limit: 3}) {
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, e.Seq)
	}
	if !slices.Equal(seqs, []int64{8, 9, 10}) {
		t.Errorf("the events %v came", seqs)
	}
	resp, err := r.server.Client().Do(r.request("GET", "/api/events?follow&cursor=2", nil, "Last-Event-ID", "40"))
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(resp.Body).ReadString('\n')
	_ = resp.Body.Close()
	if line != "id: 41\n" {
		t.Errorf("the first line is %q", line)
	}
	want := []cove.EventFilter{{Kind: "k", After: 7, Follow: true}, {After: 40, Follow: true}}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("-want +asked:\n%s", diff)
	}
}

// TestReaderThatNeverReads: what feeds a stream that nobody takes is ended.
func TestReaderThatNeverReads(t *testing.T) {
	r := serve(t, quick)
	done := make(chan error, 1)
	r.fake.exec = func(ctx context.Context, req cove.ExecRequest) (*cove.Execution, error) {
		chunk := cove.Chunk{Stream: cove.Stdout, Data: bytes.Repeat([]byte("x"), 1<<20)}
		for ctx.Err() == nil {
			req.OnOutput(chunk)
		}
		return nil, until(ctx, done)
	}
	conn := r.raw("POST /api/sandboxes/x/execute HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer " + secret +
		"\r\nContent-Length: 15\r\n\r\n{\"command\":\"x\"}")
	defer conn.Close()
	<-done
}

// raw opens a connection of its own and sends text.
func (r *rig) raw(text string) net.Conn {
	r.t.Helper()
	u, err := url.Parse(r.server.URL)
	if err != nil {
		r.t.Fatal(err)
	}
	conn, err := new(net.Dialer).DialContext(r.t.Context(), "tcp", u.Host)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		r.t.Fatal(err)
	}
	return conn
}

// TestSlowBody: a body that does not come is given up.
func TestSlowBody(t *testing.T) {
	r := serve(t, quick)
	conn := r.raw("POST /api/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + secret + "\r\nContent-Length: 100\r\n\r\n{\"user_")
	defer conn.Close()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var p wire.Problem
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || p.Code != cove.Timeout {
		t.Errorf("%+v %v", p, err)
	}
}

// TestRefusedBeforeItsBody: nobody waits for a body that is not wanted.
func TestRefusedBeforeItsBody(t *testing.T) {
	r := serve(t, quick)
	conn := r.raw("POST /api/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
	defer conn.Close()
	answer := bufio.NewReader(conn)
	resp, err := http.ReadResponse(answer, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != 401 {
		t.Errorf("%d", resp.StatusCode)
	}
	if _, err := answer.ReadByte(); err == nil {
		t.Error("the connection is still in use")
	}
}

func TestBodyBreaksOff(t *testing.T) {
	log := &logged{}
	r := serve(t, log.config)
	conn := r.raw("POST /api/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + secret + "\r\nContent-Length: 100\r\n\r\n{\"user_")
	_ = conn.(*net.TCPConn).CloseWrite()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	_ = conn.Close()
	if resp.StatusCode != httpapi.StatusClientGone || len(r.fake.calls) > 0 {
		t.Errorf("half a body: %d, %d calls", resp.StatusCode, len(r.fake.calls))
	}
}
