package client_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
)

const (
	goneID = "06gxykkpta2rj01qh5g5dfcf4c"
	nextID = "06gxykkq60gb7jm7x6nz97dpj4"
)

// mayfly is a server whose first session has expired as soon as it is open. It
// writes down what it is asked.
func mayfly(asked *[]string) http.HandlerFunc { return vanishing(asked, "session_expired") }

// vanishing is a server whose first session is gone as soon as it is open.
func vanishing(asked *[]string, reason string) http.HandlerFunc {
	opened := 0
	return func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Cove-Retry")))
		switch {
		case r.URL.Path == "/api/sandboxes":
			opened++
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			say(w, `{"sandbox_id":"`+[]string{goneID, nextID}[opened-1]+`","session_id":"`+[]string{goneID, nextID}[opened-1]+`","status":"running"}`)
		case strings.Contains(r.URL.Path, goneID):
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			say(w, `{"code":"not_found","reason":"`+reason+`","error":"the session is gone"}`)
		default:
			w.Header().Set("Content-Type", "application/json")
			say(w, `{"exit_code":0,"outcome":"exited","status":"success","stdout":"hi","session_id":"`+nextID+`"}`)
		}
	}
}

func TestAutoRetry(t *testing.T) {
	for _, reason := range []string{cove.ReasonSessionExpired, cove.ReasonNodeLost} {
		t.Run(reason, func(t *testing.T) { retriesAfter(t, reason) })
	}
}

func retriesAfter(t *testing.T, reason string) {
	var asked []string
	c := dialed(t, vanishing(&asked, reason))
	s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		x, err := c.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "echo hi"})
		if err != nil || x.Recreated != (i == 0) || x.Session != nextID || string(x.Stdout.Data) != "hi" {
			t.Errorf("%d: %+v, %v", i, x, err)
		}
	}
	want := []string{
		"POST /api/sandboxes", "POST /api/sandboxes/" + goneID + "/execute", "POST /api/sandboxes",
		"POST /api/sandboxes/" + nextID + "/execute " + reason, "POST /api/sandboxes/" + nextID + "/execute",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestAutoRetryOff(t *testing.T) {
	var asked []string
	c := dialed(t, mayfly(&asked), client.WithAutoRetry(false))
	s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"}); cove.ReasonOf(err) != cove.ReasonSessionExpired || len(asked) != 2 {
		t.Errorf("%v after %q", err, asked)
	}
}

// TestNothingIsRepeatedAfterABrokenConnection: the server may have run it.
func TestNothingIsRepeatedAfterABrokenConnection(t *testing.T) {
	var execs atomic.Int32
	var asked []string
	open := mayfly(&asked)
	c := dialed(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/execute") {
			open(w, r)
			return
		}
		execs.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler) //nolint:forbidigo // breaks the connection off
	})
	s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"}); cove.CodeOf(err) != cove.Unavailable || execs.Load() != 1 || len(asked) != 1 {
		t.Errorf("%v after %d execs and %q", err, execs.Load(), asked)
	}
}

// TestCancelReachesTheServer: between the caller and the server nothing holds a
// context that has ended, also where sessions are opened again.
func TestCancelReachesTheServer(t *testing.T) {
	running, left := make(chan struct{}), make(chan struct{})
	var asked []string
	open := mayfly(&asked)
	c := dialed(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, nextID) {
			open(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // the server notices who leaves only then
		close(running)
		<-r.Context().Done()
		close(left)
	})
	s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Processes(s.ID).Exec(ctx, cove.ExecRequest{Line: "sleep 60"})
		done <- err
	}()
	<-running
	cancel()
	if err := <-done; cove.CodeOf(err) != cove.Canceled {
		t.Errorf("the error is %v", err)
	}
	select {
	case <-left:
	case <-time.After(30 * time.Second):
		t.Error("the server still runs it")
	}
}

// TestOneConnectionForARetry: opening again and running again take the
// connection that is there.
func TestOneConnectionForARetry(t *testing.T) {
	var asked []string
	var conns atomic.Int32
	server := httptest.NewUnstartedServer(mayfly(&asked))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c, err := client.New(server.URL, secret)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := c.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections were made", n)
	}
}
