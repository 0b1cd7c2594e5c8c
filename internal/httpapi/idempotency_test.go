package httpapi_test

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

// keyIn finds the idempotency key in what a method of the platform was given.
func keyIn(args []any) string {
	for _, arg := range args {
		switch req := arg.(type) {
		case cove.OpenRequest:
			return req.IdempotencyKey
		case cove.ForkRequest:
			return req.IdempotencyKey
		case cove.SnapshotRequest:
			return req.IdempotencyKey
		case cove.VolumeRequest:
			return req.IdempotencyKey
		case cove.ExecRequest:
			return req.IdempotencyKey
		case cove.TrialRequest:
			return req.IdempotencyKey
		case cove.ContextSpec:
			return req.IdempotencyKey
		case cove.KeyRequest:
			return req.IdempotencyKey
		case cove.RunRequest:
			return req.IdempotencyKey
		case cove.ChatRequest:
			return req.IdempotencyKey
		}
	}
	return ""
}

// TestIdempotencyKeys: every route that makes something takes the header, and
// those that run something in the foreground hand it on to be refused.
func TestIdempotencyKeys(t *testing.T) {
	const one = "/api/sandboxes/x"
	for _, c := range []struct {
		verb               cove.Verb
		path, body, accept string
	}{
		{cove.SessionOpen, "/api/sandboxes", `{}`, ""},
		{cove.SnapshotFork, one + "/fork", `{}`, ""},
		{cove.SnapshotSnapshot, one + "/snapshot", `{}`, ""},
		{cove.VolumeCreate, "/api/named-volumes", `{"name":"data"}`, ""},
		{cove.ProcessStart, one + "/processes", `{"command":"true"}`, ""},
		{cove.ProcessStart, one + "/execute", `{"command":"true","background":true}`, ""},
		{cove.ContextOpen, one + "/contexts", `{"language":"python"}`, ""},
		{cove.AdminCreateKey, "/api/keys", `{"scopes":["exec"]}`, ""},
		{cove.RunSubmit, "/api/runs", `{"query_type":"sql","sql":"SELECT 1"}`, ""},
		{cove.RunSubmit, "/api/runs", `{"query_type":"sql","sql":"SELECT 1","async":true}`, ""},
		{cove.ChatSend, "/api/chat", `{"message":"hello"}`, ""},
		{cove.ChatSend, "/api/chat/stream", `{"message":"hello"}`, ""},
		{cove.ProcessExec, one + "/execute", `{"command":"true"}`, ""},
		{cove.ProcessExec, one + "/execute", `{"command":"true"}`, "text/event-stream"},
		{cove.TrialRun, one + "/trial", `{"command":"true"}`, ""},
	} {
		r := serve(t)
		a := r.send("POST", c.path, c.body, "Idempotency-Key", "k", "Accept", c.accept)
		got := r.fake.seen(c.verb)
		if a.status/100 != 2 || len(got) != 1 || keyIn(got[0].Args) != "k" {
			t.Errorf("%s %s: %d %s, the platform was given %+v", c.path, c.body, a.status, a.body, got)
		}
	}
	r := serve(t)
	r.send("POST", one+"/execute", `{"command":"true"}`+"\ninput", "Idempotency-Key", "k", "Content-Type", "application/x-cove-exec")
	if got := r.fake.seen(cove.ProcessExec); len(got) != 1 || keyIn(got[0].Args) != "k" {
		t.Errorf("with input: the platform was given %+v", got)
	}
}

func TestStatusesOfFork(t *testing.T) {
	for want, created := range map[int]bool{201: true, 200: false} {
		r := serve(t)
		r.fake.fork = func() (*cove.Session, error) { return &cove.Session{ID: "s", Created: created}, nil }
		if a := r.send("POST", "/api/sandboxes/x/fork", "{}"); a.status != want || !strings.Contains(a.body, `"session_id":"s"`) && !strings.Contains(a.body, `"id":"s"`) {
			t.Errorf("created %t: %d %s", created, a.status, a.body)
		}
	}
}
