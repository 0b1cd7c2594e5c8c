package e2bapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/e2bapi"
)

// both runs a test over HTTP/1.1 and HTTP/2.
func both(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	for name, two := range map[string]bool{"http1": false, "http2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := serveWith(t, rigOptions{http2: two})
			test(t, r)
		})
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		id := r.open(cove.Spec{})
		o := r.run(id, "echo hi; echo err >&2; exit 3").all()
		if o.pid < 1 || o.stdout != "hi\n" || o.stderr != "err\n" || o.code != "" {
			t.Errorf("it is %+v", o)
		}
		want := &endSeen{ExitCode: 3, Exited: true, Status: "exit status 3", Error: "exit status 3"}
		if diff := cmp.Diff(want, o.end); diff != "" {
			t.Error(diff)
		}
		o = r.run(id, "true").all()
		if diff := cmp.Diff(&endSeen{Exited: true, Status: "exit status 0"}, o.end); diff != "" {
			t.Error(diff)
		}
	})
}

// What a program finds around it is what E2B's find.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{Env: map[string]string{"OPENED": "1"}})
	if err := r.platform().Files(id).Mkdir(t.Context(), "sub"); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ more, want string }{
		"usual":  {"", "/home/user user user 1\n/workspace\n"},
		"given":  {`"envs":{"HOME":"/tmp","MINE":"x"}`, "/tmp user user 1 x\n/workspace\n"},
		"folder": {`"cwd":"sub"`, "/home/user user user 1\n/workspace/sub\n"},
		"home":   {`"cwd":"/home/user/sub"`, "/home/user user user 1\n/workspace/sub\n"},
		"other":  {`"cwd":"/tmp"`, "/home/user user user 1\n/tmp\n"},
	} {
		t.Run(name, func(t *testing.T) {
			more := ""
			if tc.more != "" {
				more = "," + tc.more
			}
			o := r.stream(t.Context(), id, startCall,
				`{"process":{"cmd":"/bin/bash","args":["-l","-c","echo $HOME $USER $LOGNAME $OPENED $MINE; pwd -P"]`+more+`},"stdin":false}`).all()
			if o.stdout != tc.want {
				t.Errorf("it wrote %q, %+v", o.stdout, o)
			}
		})
	}
}

// Output comes in pieces that a client can take, and whole.
func TestBigOutput(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		id := r.open(cove.Spec{})
		o := r.run(id, "seq 1 60000").all()
		var want strings.Builder
		for i := range 60000 {
			fmt.Fprintln(&want, i+1)
		}
		if o.stdout != want.String() {
			t.Errorf("%d bytes came of %d", len(o.stdout), want.Len())
		}
		if o.longest > 32<<10 {
			t.Errorf("a piece has %d bytes", o.longest)
		}
	})
}

// The deadline of the call kills the program, and the stream says so.
func TestDeadlineKills(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{})
	for _, header := range []string{"50", "50.5"} { // one client writes a fraction
		o := r.run(id, "echo up; sleep 1000", "Connect-Timeout-Ms", header).all()
		if o.code != "deadline_exceeded" || o.message != "context deadline exceeded" || o.end != nil {
			t.Errorf("it is %+v", o)
		}
		for p, err := range r.platform().Processes(id).List(t.Context()) {
			if err != nil || p.Running {
				t.Errorf("%+v, %v is there", p, err)
			}
		}
	}
}

// A client that goes away leaves the program running, and another finds it.
func TestDisconnectDoesNotKill(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		id := r.open(cove.Spec{})
		ctx, leave := context.WithCancel(t.Context())
		s := r.stream(ctx, id, startCall, bash("echo up; read x; echo got $x; exit 4"))
		pid := s.began()
		s.until("up\n")
		leave()
		again := r.stream(t.Context(), id, "/process.Process/Connect", fmt.Sprintf(`{"process":{"pid":%d}}`, pid))
		if got := again.began(); got != pid {
			t.Errorf("connected to %d", got)
		}
		if status, body := r.unary(id, "/process.Process/SendInput", fmt.Sprintf(`{"process":{"pid":%d},"input":{"stdin":"YWdhaW4K"}}`, pid)); status != http.StatusOK || body != "{}" {
			t.Errorf("input is answered with %d %s", status, body)
		}
		o := again.all()
		if o.stdout != "got again\n" || o.end == nil || o.end.ExitCode != 4 {
			t.Errorf("it is %+v", o)
		}
	})
}

func TestStdin(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{})
	s := r.stream(t.Context(), id, startCall, bash("cat; echo over", `"stdin":true`))
	at := fmt.Sprintf(`{"process":{"pid":%d}`, s.began())
	for _, c := range []struct{ method, more string }{
		{"SendInput", `,"input":{"stdin":"b25lCg=="}}`},
		{"SendInput", `,"input":{"stdin":""}}`},
		{"SendInput", `,"input":{}}`},
		{"CloseStdin", `}`},
	} {
		if status, body := r.unary(id, "/process.Process/"+c.method, at+c.more); status != http.StatusOK || body != "{}" {
			t.Errorf("%s is answered with %d %s", c.method, status, body)
		}
	}
	if o := s.all(); o.stdout != "one\nover\n" {
		t.Errorf("it is %+v", o)
	}
}

// Old clients say nothing of input, and then it is open.
func TestStdinIsOpenWhereNothingIsSaid(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{})
	s := r.stream(t.Context(), id, startCall, bash("cat"))
	pid := s.began()
	if status, body := r.unary(id, "/process.Process/CloseStdin", fmt.Sprintf(`{"process":{"pid":%d}}`, pid)); status != http.StatusOK {
		t.Errorf("it is answered with %d %s", status, body)
	}
	if o := s.all(); o.end == nil || o.end.ExitCode != 0 {
		t.Errorf("it is %+v", o)
	}
	s = r.run(id, "sleep 1000") // without input
	at := fmt.Sprintf(`{"process":{"pid":%d}`, s.began())
	status, body := r.unary(id, "/process.Process/SendInput", at+`,"input":{"stdin":"eA=="}}`)
	if status != http.StatusBadRequest || !strings.Contains(body, `"failed_precondition"`) {
		t.Errorf("input is answered with %d %s", status, body)
	}
	if status, body := r.unary(id, "/process.Process/SendSignal", at+`,"signal":"SIGNAL_SIGKILL"}`); status != http.StatusOK {
		t.Fatalf("a signal is answered with %d %s", status, body)
	}
	s.all()
}

func TestSignals(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{})
	for name, tc := range map[string]struct {
		signal string
		want   *endSeen
	}{
		"kill":      {`"SIGNAL_SIGKILL"`, &endSeen{ExitCode: 137, Status: "signal: killed", Error: "signal: killed"}},
		"by number": {`9`, &endSeen{ExitCode: 137, Status: "signal: killed", Error: "signal: killed"}},
		"terminate": {`"SIGNAL_SIGTERM"`, &endSeen{ExitCode: 143, Status: "signal: terminated", Error: "signal: terminated"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := r.stream(t.Context(), id, startCall, `{"process":{"cmd":"sleep","args":["1000"]}}`)
			pid := s.began()
			if status, body := r.unary(id, "/process.Process/SendSignal", fmt.Sprintf(`{"process":{"pid":%d},"signal":%s}`, pid, tc.signal)); status != http.StatusOK || body != "{}" {
				t.Fatalf("it is answered with %d %s", status, body)
			}
			if diff := cmp.Diff(tc.want, s.all().end); diff != "" {
				t.Error(diff)
			}
			status, body := r.unary(id, "/process.Process/SendSignal", fmt.Sprintf(`{"process":{"pid":%d},"signal":%s}`, pid, tc.signal))
			if status != http.StatusNotFound || !strings.Contains(body, `"not_found"`) {
				t.Errorf("after the end it is answered with %d %s", status, body)
			}
		})
	}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{})
	s := r.stream(t.Context(), id, startCall, `{"process":{"cmd":"/bin/bash","args":["-l","-c","stty size; read x; stty size; echo $x"]},"pty":{"size":{"cols":80,"rows":24}}}`)
	at := fmt.Sprintf(`{"process":{"pid":%d}`, s.began())
	s.until("24 80")
	for _, c := range []struct{ method, more string }{
		{"Update", `,"pty":{"size":{"cols":100,"rows":30}}}`},
		{"Update", `}`},
		{"SendInput", `,"input":{"pty":"aGkK"}}`},
	} {
		if status, body := r.unary(id, "/process.Process/"+c.method, at+c.more); status != http.StatusOK || body != "{}" {
			t.Errorf("%s is answered with %d %s", c.method, status, body)
		}
	}
	o := s.all()
	if !strings.Contains(o.pty, "30 100") || o.stdout != "" || o.end == nil || o.end.ExitCode != 0 {
		t.Errorf("it is %+v", o)
	}
}

// What policy refuses is a program that says why, and nothing has run.
func TestRefusedByPolicy(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{Policy: "agent-bash"})
	o := r.run(id, "rm -rf /").all()
	if o.pid != 1<<31-1 || !strings.Contains(o.stderr, "blocked by rule") || o.end == nil || o.end.ExitCode != 126 || o.end.Status != "exit status 126" {
		t.Errorf("it is %+v", o)
	}
	for p := range r.platform().Processes(id).List(t.Context()) {
		t.Errorf("%+v is there", p)
	}
}

func TestConnectErrors(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{})
	ended := r.run(id, "true").all().pid
	for name, tc := range map[string]struct{ message, code string }{
		"unknown":  {`{"process":{"pid":99}}`, "not_found"},
		"ended":    {fmt.Sprintf(`{"process":{"pid":%d}}`, ended), "not_found"},
		"no tag":   {`{"process":{"tag":"x"}}`, "not_found"},
		"nothing":  {`{}`, "invalid_argument"},
		"negative": {`{"process":{"pid":-1}}`, "not_found"},
		"a text":   {`{"process":{"pid":"x"}}`, "invalid_argument"},
	} {
		t.Run(name, func(t *testing.T) {
			if o := r.stream(t.Context(), id, "/process.Process/Connect", tc.message).all(); o.code != tc.code || o.message == "" {
				t.Errorf("it is %+v", o)
			}
		})
	}
}

// The deadline of who only looks on is not that of the program.
func TestDeadlineOfConnect(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{})
	s := r.run(id, "sleep 1000")
	pid := s.began()
	at := fmt.Sprintf(`{"process":{"pid":%d}`, pid)
	if o := r.stream(t.Context(), id, "/process.Process/Connect", at+"}", "Connect-Timeout-Ms", "1000").all(); o.code != "deadline_exceeded" || o.pid != pid {
		t.Errorf("it is %+v", o)
	}
	if status, body := r.unary(id, "/process.Process/SendSignal", at+`,"signal":"SIGNAL_SIGKILL"}`); status != http.StatusOK {
		t.Fatalf("the program is gone: %d %s", status, body)
	}
	if o := s.all(); o.end == nil || o.end.ExitCode != 137 {
		t.Errorf("it is %+v", o)
	}
}

// A silent stream says that it lives, as often as its client asked.
func TestStreamKeepalive(t *testing.T) {
	t.Parallel()
	r := serve(t, func(c *e2bapi.Config) { c.Keepalive = 20_000_000 })
	id := r.open(cove.Spec{})
	s := r.stream(t.Context(), id, startCall, bash("read x"), "Keepalive-Ping-Interval", "50")
	pid := s.began()
	for range 2 {
		if e := s.next(); e.Event.Keepalive == nil {
			t.Errorf("the stream says %+v", e)
		}
	}
	if status, body := r.unary(id, "/process.Process/CloseStdin", fmt.Sprintf(`{"process":{"pid":%d}}`, pid)); status != http.StatusOK {
		t.Errorf("it is answered with %d %s", status, body)
	}
	s.all()
}
