package httpapi_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/httpapi"
)

func TestRunPythonCode(t *testing.T) {
	const at = "/api/tools/run_python_code"
	r := serve(t, func(c *httpapi.Config) { c.ToolImports = cove.ImportsWarn })
	r.fake.open = func(_ context.Context, req cove.OpenRequest) (*cove.Session, error) {
		if req.Spec.Template == "none" {
			return nil, cove.InvalidField("template", "is unknown")
		}
		return &cove.Session{ID: "made", Spec: req.Spec}, nil
	}
	var asked cove.CodeRequest
	r.fake.run = func(_ context.Context, req cove.CodeRequest) (*cove.CodeResult, error) {
		asked = req
		x := &cove.CodeResult{Timeout: time.Second}
		x.Outcome, x.Provider = cove.Exited, "local"
		x.Stdout.Data = []byte("hi\n")
		return x, nil
	}
	a := r.send("POST", at, `{"code":"print('hi')","timeout":2.5}`)
	want := `{"result":"hi","stdout":"hi\n","stderr":"","exit_code":0,"duration":0,"meta":{"runtime":"local","truncated":false,"timed_out":false,"blocked_imports":[],"resource_limits":{"timeout_sec":1,"max_output_kb":0}}}` + "\n"
	if a.status != 200 || a.body != want {
		t.Errorf("%d %s", a.status, a.body)
	}
	if asked.Language != "python" || asked.Limits.Wall != 2500*time.Millisecond || asked.Imports != cove.ImportsWarn {
		t.Errorf("%+v", asked)
	}
	if closed := r.fake.seen(cove.SessionClose); len(closed) != 1 || closed[0].Args[0] != cove.ID("made") {
		t.Errorf("%v", closed)
	}
	if a := r.send("POST", at, `{"code":"1","session_id":"s"}`); a.status != 200 || len(r.fake.seen(cove.SessionClose)) != 1 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := r.send("POST", at, `{"code":"1","template":"none"}`); a.status != 200 || !strings.Contains(a.body, `"result":"Execution failed: template: is unknown"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	for name, body := range map[string]string{
		"no time": `{"code":"1","timeout":-1}`, "both": `{"code":"1","session_id":"s","template":"t"}`, "no code": `{"x":1}`,
	} {
		if a := r.send("POST", at, body); a.status != 400 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := r.send("POST", at, `{"code":"1"}`, "Idempotency-Key", "k"); a.status != 400 {
		t.Errorf("%d %s", a.status, a.body)
	}
}
