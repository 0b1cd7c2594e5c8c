package e2bapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/cove-sandbox/cove"
)

func TestProcessList(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{})
	if status, body := r.unary(id, "/process.Process/List", `{}`); status != http.StatusOK || body != `{"processes":[]}` {
		t.Errorf("it is answered with %d %s", status, body)
	}
	r.run(id, "true").all() // has ended, and is not in the list
	s := r.stream(t.Context(), id, startCall, `{"process":{"cmd":"sleep","args":["1000"],"cwd":"/tmp","envs":{"A":"b"}},"tag":"mine"}`)
	pid := s.began()
	status, body := r.unary(id, "/process.Process/List", `{}`)
	want := fmt.Sprintf(`{"processes":[{"config":{"cmd":"sleep","args":["1000"],"envs":{},"cwd":"/tmp"},"pid":%d,"tag":"mine"}]}`, pid)
	if status != http.StatusOK || body != want {
		t.Errorf("it is answered with %d %s", status, body)
	}
	if status, body := r.unary(id, "/process.Process/SendSignal", `{"process":{"tag":"mine"},"signal":"SIGNAL_SIGKILL"}`); status != http.StatusOK {
		t.Fatalf("a signal by tag is answered with %d %s", status, body)
	}
	s.all()
}
