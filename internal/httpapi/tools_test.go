package httpapi_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/httpapi"
	"github.com/cove-sandbox/cove/internal/wire"
)

func TestAnalyzeRequests(t *testing.T) {
	var got []string
	r := serve(t, func(c *httpapi.Config) {
		c.Explain = func(profile string, req cove.ExecRequest) (wire.Analysis, error) {
			got = append(got, profile+": "+req.Line+strings.Join(req.Argv, "|")+req.Env["A"])
			return wire.Analysis{Policy: profile, Effect: cove.Allow}, nil
		}
	})
	for name, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"a line":        {`{"command":"ls","policy":"p"}`, 200, `{"policy":"p","effect":"allow","programs":null}`},
		"words":         {`{"command":["ls","x"],"policy":"p","env":{"A":"b"}}`, 200, `"effect":"allow"`},
		"nothing":       {`{}`, 400, "command: is missing"},
		"two things":    {`{"command":"ls","sql":"x"}`, 400, "one thing at a time"},
		"two others":    {`{"code":"x","sql":"x"}`, 400, "one thing at a time"},
		"code":          {`{"language":"python","code":"x"}`, 200, `"security":{`},
		"code, twice":   {`{"language":"python","code":"x","session_id":"s","template":"t"}`, 400, "leave that out, or the session"},
		"sql":           {`{"sql":"select 1","dataset_id":"d"}`, 200, `"effect":"allow"`},
		"a run's code":  {`{"python_code":"1"}`, 200, `"tables":["string-`},
		"code and run":  {`{"python_code":"1","code":"1"}`, 400, "one thing at a time"},
		"sql of a file": {`{"sql":"x","files":[{"name":"a","path":"a.csv"}]}`, 200, `"refusal":{`},
		"wrong command": {`{"command":7}`, 400, "command"},
	} {
		a := r.send("POST", "/api/analyze", c.body)
		if a.status != c.status || !strings.Contains(a.body, c.want) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		if c.status == 501 && !strings.Contains(a.body, `"remedy":`) {
			t.Errorf("%s: nothing says what to do: %s", name, a.body)
		}
	}
	if len(got) != 2 {
		t.Errorf("the policy was asked about %q", got)
	}
	if a := serve(t).send("POST", "/api/analyze", `{"command":"ls"}`); a.status != 501 {
		t.Errorf("without policies: %d %s", a.status, a.body)
	}
	r.fake.fail = cove.Errorf(cove.Denied, "no")
	if a := r.send("POST", "/api/analyze", `{"command":"ls"}`); a.status != 403 || len(got) != 2 {
		t.Errorf("who may not look: %d %s", a.status, a.body)
	}
}

func TestVerifyEvents(t *testing.T) {
	var end error
	r := serve(t, func(c *httpapi.Config) {
		c.Verify = func(_ context.Context, provider string, found func(wire.Finding) error) error {
			for _, f := range []wire.Finding{{Attack: "a", Held: true}, {Attack: provider}, {Attack: "c", Skipped: "why"}} {
				if err := found(f); err != nil {
					return err
				}
			}
			return end
		}
	})
	a := r.send("POST", "/api/verify", `{"provider":"p"}`)
	if a.status != 200 || strings.Count(a.body, "event: finding\n") != 3 || !strings.Contains(a.body, `"attack":"p"`) ||
		!strings.HasSuffix(a.body, "event: verdict\ndata: {\"attempts\":3,\"held\":1,\"got_through\":1,\"not_tried\":1}\n\n") {
		t.Errorf("%d %s", a.status, a.body)
	}
	end = cove.Errorf(cove.Unavailable, "it broke")
	if a := r.send("POST", "/api/verify", ""); a.status != 200 || !strings.Contains(a.body, "event: error") || strings.Contains(a.body, "verdict") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := r.send("POST", "/api/verify", `{"x":1}`); a.status != 400 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := serve(t).send("POST", "/api/verify", ""); a.status != 501 {
		t.Errorf("without attacks: %d %s", a.status, a.body)
	}
	r.fake.fail = cove.Errorf(cove.Denied, "no")
	if a := r.send("POST", "/api/verify", ""); a.status != 403 {
		t.Errorf("who is no admin: %d %s", a.status, a.body)
	}
}

func TestCodeWithoutASession(t *testing.T) {
	r := serve(t)
	r.fake.open = func(_ context.Context, req cove.OpenRequest) (*cove.Session, error) {
		if req.Spec.Template == "none" {
			return nil, cove.InvalidField("template", "is unknown")
		}
		return &cove.Session{ID: "made", Created: true, Spec: req.Spec}, nil
	}
	a := r.send("POST", "/api/code", `{"language":"python","code":"1","template":"t","flavor":"f"}`)
	if a.status != 200 || !strings.Contains(a.body, `"session_created":true}`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if ran := r.fake.seen(cove.ContextRun); len(ran) != 1 || ran[0].Args[0] != cove.ID("made") {
		t.Errorf("it ran as %v", ran)
	}
	a = r.send("POST", "/api/code", `{"code":"1"}`, "Accept", sse)
	if a.status != 200 || !strings.HasPrefix(a.body, "event: session\n") || !strings.Contains(a.body, "event: result\n") {
		t.Errorf("%d %s", a.status, a.body)
	}
	for name, body := range map[string]string{
		"both":             `{"code":"1","session_id":"x","flavor":"f"}`,
		"negative":         `{"code":"1","timeout":-1}`,
		"unknown":          `{"code":"1","colour":"red"}`,
		"unknown template": `{"code":"1","template":"none"}`,
	} {
		if a := r.send("POST", "/api/code", body); a.status != 400 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if n := len(r.fake.seen(cove.SessionClose)); n != 0 {
		t.Errorf("%d sessions were closed", n)
	}
	r.fake.run = func(context.Context, cove.CodeRequest) (*cove.CodeResult, error) { return nil, errors.New("broken") }
	for _, accept := range []string{"", sse} {
		a = r.send("POST", "/api/code", `{"code":"1"}`, "Accept", accept)
		if !strings.Contains(a.body, `"code":"internal"`) {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if got := r.fake.seen(cove.SessionClose); len(got) != 2 || got[0].Args[0] != cove.ID("made") {
		t.Errorf("closed were %v", got)
	}
	if a := r.send("POST", "/api/code", `{"code":"1","session_id":"x"}`); a.status != 500 || len(r.fake.seen(cove.SessionClose)) != 2 {
		t.Errorf("a session of the caller's own was closed: %d", a.status)
	}
}

func TestTemplates(t *testing.T) {
	r := serve(t)
	if a := r.send("GET", "/api/templates", ""); a.status != 200 || !strings.Contains(a.body, `"providers":["`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := r.send("PUT", "/api/templates/web", "a tar"); a.status != 200 || !strings.Contains(a.body, `"digest":"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := r.send("POST", "/api/templates/web/tags", `{"as":1}`); a.status != 400 {
		t.Errorf("%d %s", a.status, a.body)
	}
	r.fake.fail = cove.Errorf(cove.Denied, "no")
	for _, c := range [][3]string{{"GET", "", ""}, {"PUT", "/web", "a tar"}, {"POST", "/web/tags", `{"as":"x"}`}, {"DELETE", "/web", ""}} {
		if a := r.send(c[0], "/api/templates"+c[1], c[2]); a.status != 403 {
			t.Errorf("%v: %d", c, a.status)
		}
	}
}
