package e2bapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/e2bapi"
)

// Frames that no client of theirs sends are told apart, and nothing is started.
func TestHostileFrames(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		id := r.open(cove.Spec{})
		good := string(framed(0, bash("true")))
		for name, tc := range map[string]struct{ body, code string }{
			"nothing":             {"", "invalid_argument"},
			"half a head":         {"\x00\x00\x00", "invalid_argument"},
			"half a message":      {good[:len(good)-3], "invalid_argument"},
			"a length that lies":  {"\x00\xff\xff\xff\xff" + good[5:], "resource_exhausted"},
			"over the bound":      {string(framed(0, bash(strings.Repeat("x", e2bapi.MaxFrame)))), "resource_exhausted"},
			"compressed":          {string(framed(1, bash("true"))), "unimplemented"},
			"unknown flags":       {string(framed(4, bash("true"))), "invalid_argument"},
			"the last one":        {string(framed(2, bash("true"))), "invalid_argument"},
			"two frames":          {good + good, "invalid_argument"},
			"one and a half":      {good + good[:9], "invalid_argument"},
			"no JSON":             {string(framed(0, "{")), "invalid_argument"},
			"an array":            {string(framed(0, "[]")), "invalid_argument"},
			"a number for a text": {string(framed(0, `{"process":{"cmd":7}}`)), "invalid_argument"},
			"null":                {string(framed(0, `null`)), "invalid_argument"},
			"no command":          {string(framed(0, `{"process":{}}`)), "invalid_argument"},
			"a NUL byte":          {string(framed(0, `{"process":{"cmd":"a\u0000b"}}`)), "invalid_argument"},
			"a NUL in a folder":   {string(framed(0, `{"process":{"cmd":"true","cwd":"a\u0000"}}`)), "invalid_argument"},
			"no such folder":      {string(framed(0, `{"process":{"cmd":"true","cwd":"/nope"}}`)), "invalid_argument"},
			"a bad name":          {string(framed(0, `{"process":{"cmd":"true","envs":{"A=B":"x"}}}`)), "invalid_argument"},
			"no terminal":         {string(framed(0, `{"process":{"cmd":"true"},"pty":{"size":{"cols":0,"rows":1}}}`)), "invalid_argument"},
			"a huge terminal":     {string(framed(0, `{"process":{"cmd":"true"},"pty":{"size":{"cols":70000,"rows":1}}}`)), "invalid_argument"},
			"bytes that are none": {string(framed(0, `{"process":{"cmd":"true"},"stdin":"yes"}`)), "invalid_argument"},
		} {
			t.Run(name, func(t *testing.T) {
				o := r.streamOf(t.Context(), id, startCall, strings.NewReader(tc.body)).all()
				if o.code != tc.code || o.message == "" || o.pid != 0 {
					t.Errorf("it is %+v", o)
				}
			})
		}
		for p := range r.platform().Processes(id).List(t.Context()) {
			t.Errorf("%+v was started", p)
		}
	})
}

// Calls of one message have statuses, and the word that clients look for.
func TestHostileCalls(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{})
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("{}"))
	_ = z.Close()
	for name, tc := range map[string]struct {
		method, body string
		header       []string
		status       int
		code         string
	}{
		"no JSON":           {"List", "{", nil, 400, "invalid_argument"},
		"empty":             {"List", "", nil, 400, "invalid_argument"},
		"too long":          {"SendInput", `{"x":"` + strings.Repeat("x", e2bapi.MaxFrame+8) + `"}`, nil, 429, "resource_exhausted"},
		"protobuf":          {"List", "", []string{"Content-Type", "application/proto"}, 415, "unimplemented"},
		"frames":            {"List", "", []string{"Content-Type", "application/connect+json"}, 415, "unimplemented"},
		"no type":           {"List", "{}", []string{"Content-Type", ""}, 415, "unimplemented"},
		"gRPC":              {"Start", "", []string{"Content-Type", "application/grpc"}, 415, "unimplemented"},
		"a stream in one":   {"Start", "{}", nil, 415, "unimplemented"},
		"compressed":        {"List", packed.String(), []string{"Content-Encoding", "gzip"}, 501, "unimplemented"},
		"no token":          {"List", "{}", []string{"X-Access-Token", ""}, 401, "unauthenticated"},
		"another's token":   {"List", "{}", []string{"X-Access-Token", r.token(cove.NewID())}, 401, "unauthenticated"},
		"root":              {"List", "{}", []string{"Authorization", "Basic cm9vdDo="}, 400, "invalid_argument"},
		"a deadline":        {"List", "{}", []string{"Connect-Timeout-Ms", "soon"}, 400, "invalid_argument"},
		"a negative one":    {"List", "{}", []string{"Connect-Timeout-Ms", "-5"}, 400, "invalid_argument"},
		"no number":         {"List", "{}", []string{"Connect-Timeout-Ms", "NaN"}, 400, "invalid_argument"},
		"no signal":         {"SendSignal", `{"process":{"pid":1}}`, nil, 400, "invalid_argument"},
		"unknown signal":    {"SendSignal", `{"process":{"pid":1},"signal":"SIGNAL_SIGINT"}`, nil, 400, "invalid_argument"},
		"nobody to signal":  {"SendSignal", `{"process":{"pid":1},"signal":9}`, nil, 404, "not_found"},
		"a huge number":     {"SendSignal", `{"process":{"pid":4294967297},"signal":9}`, nil, 404, "not_found"},
		"nobody to read":    {"SendInput", `{"process":{"pid":1},"input":{"stdin":"eA=="}}`, nil, 404, "not_found"},
		"bytes that are no": {"SendInput", `{"process":{"pid":1},"input":{"stdin":"?"}}`, nil, 400, "invalid_argument"},
		"nobody to close":   {"CloseStdin", `{"process":{"tag":"x"}}`, nil, 404, "not_found"},
		"nobody to resize":  {"Update", `{"process":{"pid":1},"pty":{"size":{"cols":1,"rows":1}}}`, nil, 404, "not_found"},
		"a size of none":    {"Update", `{"process":{"pid":1},"pty":{"size":{"cols":0,"rows":1}}}`, nil, 400, "invalid_argument"},
		"whose terminal":    {"Update", `{}`, nil, 400, "invalid_argument"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := r.unary(id, "/process.Process/"+tc.method, tc.body, tc.header...)
			if status != tc.status || !strings.Contains(body, `"code":"`+tc.code+`","message":"`) {
				t.Errorf("it is answered with %d %s", status, body)
			}
		})
	}
}

// In a call of frames the word comes in the last one: clients do not look into what
// has another status.
func TestHostileStreams(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{})
	for name, tc := range map[string]struct {
		method string
		header []string
		code   string
	}{
		"no token":        {"Start", []string{"X-Access-Token", ""}, "unauthenticated"},
		"another's token": {"Connect", []string{"X-Access-Token", r.token(cove.NewID())}, "unauthenticated"},
		"root":            {"Start", []string{"Authorization", "Basic cm9vdDo="}, "invalid_argument"},
		"a deadline":      {"Start", []string{"Connect-Timeout-Ms", "soon"}, "invalid_argument"},
		"of who looks on": {"Connect", []string{"Connect-Timeout-Ms", "soon"}, "invalid_argument"},
		"of who sends":    {"StreamInput", []string{"Connect-Timeout-Ms", "soon"}, "invalid_argument"},
		"compressed":      {"Start", []string{"Content-Encoding", "gzip"}, "unimplemented"},
	} {
		t.Run(name, func(t *testing.T) {
			o := r.stream(t.Context(), id, "/process.Process/"+tc.method, bash("true"), tc.header...).all()
			if o.code != tc.code || o.message == "" || o.pid != 0 {
				t.Errorf("it is %+v", o)
			}
		})
	}
}

// A long deadline is one, and none of nothing is none.
func TestLongDeadlines(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{})
	for _, ms := range []string{"0", "1e18", "9999999999"} {
		if o := r.run(id, "echo up", "Connect-Timeout-Ms", ms).all(); o.stdout != "up\n" || o.code != "" {
			t.Errorf("with %s it is %+v", ms, o)
		}
	}
}

// Another tenant's sandbox, or one that is not there, cannot be told apart from one
// that has ended.
func TestSandboxThatIsNotThere(t *testing.T) {
	t.Parallel()
	r := serve(t)
	gone := cove.NewID()
	status, body := r.unary(gone, "/process.Process/List", "{}")
	if status != http.StatusBadGateway || !strings.Contains(body, "The sandbox was not found") {
		t.Errorf("it is answered with %d %s", status, body)
	}
}

// A connection that is cut in the middle of anything leaves nothing behind: what is
// left running, goleak finds.
func TestCutConnections(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{})
	message := string(framed(0, bash("echo up; sleep 1000")))
	for name, text := range map[string]string{
		"in the headers": r.head(id, "Start", 5)[:60],
		"in the frame":   r.head(id, "Start", len(message)) + message[:7],
		"in the input":   r.head(id, "StreamInput", 1000) + string(framed(0, `{"keepalive":{}}`)),
	} {
		t.Run(name, func(t *testing.T) { cut(t, r, text, "") })
	}
	t.Run("in the output", func(t *testing.T) { cut(t, r, r.head(id, "Start", len(message))+message, `"stdout"`) })
	// The program lives, and ends with its session.
	running := 0
	for p, err := range r.platform().Processes(id).List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Running {
			running++
		}
	}
	if running != 1 {
		t.Errorf("%d programs run", running)
	}
	if _, err := r.platform().Sessions().Close(t.Context(), id, false); err != nil {
		t.Error(err)
	}
}

// cut sends a text, reads until another comes, and closes the connection.
func cut(t *testing.T, r *rig, send, until string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(r.server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, send); err != nil {
		t.Fatal(err)
	}
	got, buf := "", make([]byte, 512)
	for !strings.Contains(got, until) {
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		got += string(buf[:n])
	}
}

// A client that takes nothing is given up, and the program goes on.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	r := serve(t, func(c *e2bapi.Config) {
		c.Stall = 50 * time.Millisecond
		c.End = func(_ context.Context, e e2bapi.Ending) { ended <- e.Err }
	})
	id := r.open(cove.Spec{})
	message := string(framed(0, bash("seq 1 2000000; echo over >done")))
	conn, err := (&net.Dialer{Control: smallBuffer}).DialContext(t.Context(), "tcp", strings.TrimPrefix(r.server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, r.head(id, "Start", len(message))+message); err != nil {
		t.Fatal(err)
	}
	// Nothing is read. What the kernel holds for the client fills up.
	if err := <-ended; cove.CodeOf(err) != cove.Canceled {
		t.Errorf("the call ended with %v", err)
	}
	for p, err := range r.platform().Processes(id).List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if x, err := r.platform().Processes(id).Wait(t.Context(), p.PID); err != nil || x.ExitCode != 0 {
			t.Errorf("the program ended as %+v, %v", x, err)
		}
	}
}

// smallBuffer has the kernel hold little for a client.
func smallBuffer(_, _ string, c syscall.RawConn) (err error) {
	return errors.Join(c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) }), err)
}

// head is how a call begins on the wire.
func (r *rig) head(id cove.ID, method string, length int) string {
	return fmt.Sprintf("POST /process.Process/%s HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: 49983\r\nX-Access-Token: %s\r\n"+
		"Content-Type: application/connect+json\r\nContent-Length: %d\r\n\r\n", method, id, r.token(id), length)
}

// Who went away while the program wrote is not written to.
func TestOutputAfterTheCall(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		id := r.open(cove.Spec{})
		for range 5 {
			ctx, leave := context.WithCancel(t.Context())
			s := r.stream(ctx, id, startCall, bash("seq 1 20000", `"stdin":false`))
			pid := cove.PID(s.began())
			leave()
			if x, err := r.platform().Processes(id).Wait(t.Context(), pid); err != nil || x.ExitCode != 0 {
				t.Errorf("it ended as %+v, %v", x, err)
			}
		}
	})
}

// A caller who must not go on is cut off, and the program is not.
func TestOwnerWhoMustNotGoOn(t *testing.T) {
	t.Parallel()
	revoked := make(chan struct{})
	r := serve(t, func(c *e2bapi.Config) {
		c.Watch = func(ctx context.Context, _ cove.Principal) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			done := make(chan struct{})
			go func() {
				select {
				case <-revoked:
					cancel(cove.Errorf(cove.Unauthenticated, "the key was revoked"))
				case <-done:
				}
			}()
			return ctx, func() { close(done); cancel(nil) }
		}
	})
	id := r.open(cove.Spec{})
	s := r.run(id, "sleep 1000")
	s.began()
	body, w := io.Pipe()
	defer w.Close()
	in := make(chan outcome, 1)
	go func() { in <- r.streamOf(t.Context(), id, streamInputCall, body).all() }()
	if _, err := w.Write(framed(0, `{"keepalive":{}}`)[:4]); err != nil {
		t.Fatal(err)
	}
	close(revoked)
	if o := s.all(); o.code != "unauthenticated" || o.message != "the key was revoked" {
		t.Errorf("it is %+v", o)
	}
	if o := <-in; o.code != "unauthenticated" {
		t.Errorf("the input is %+v", o)
	}
}
