package e2bapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

const codePort = 49999

// serveCode starts a face whose sandboxes speak languages that clients know, all of
// them the fake's own.
func serveCode(t *testing.T) *rig {
	t.Helper()
	return serveWith(t, rigOptions{engine: func(c *engine.Config) {
		c.Kernels = map[string]cove.Kernels{"": fake.Kernels{Names: []string{"python", "node", "bash"}}}
	}})
}

// code sends a request to the interpreter.
func (r *rig) code(id cove.ID, method, path, body string, header ...string) (int, string) {
	r.t.Helper()
	status, text, _ := r.read(r.inside(r.t.Context(), id, codePort, method, path, strings.NewReader(body), header...))
	return status, text
}

// execute runs code and returns the lines.
func (r *rig) execute(id cove.ID, body string) []line {
	r.t.Helper()
	status, text := r.code(id, http.MethodPost, "/execute", body)
	if status != http.StatusOK {
		r.t.Fatalf("%s answered %d %s", body, status, text)
	}
	return linesOf(r.t, text)
}

func TestExecute(t *testing.T) {
	r := serveCode(t)
	id := r.open(cove.Spec{})
	end := line{Type: "end_of_execution"}
	for i, c := range []struct {
		body string
		want []line
	}{
		{`{"code":"x = 42"}`, nil},
		{`{"code":"x + 1","context_id":null,"language":null,"env_vars":null}`, []line{{Type: "result", Text: "43", Main: true}}},
		{`{"code":"print(x, \"ü\")\nwarn(x)\nx","language":"python"}`, []line{{Type: "stdout", Text: "42 ü\n"}, {Type: "stderr", Text: "42\n"}, {Type: "result", Text: "42", Main: true}}},
		{`{"code":"print(WORD)","context_id":"python","env_vars":{"WORD":"one"}}`, []line{{Type: "stdout", Text: "one\n"}}},
		{`{"code":"raise E msg"}`, []line{{Type: "error", Name: "E", Value: "msg"}}},
		{`{"code":"print(WORD)"}`, []line{{Type: "error", Name: "NameError", Value: "name 'WORD' is not defined"}}},
	} {
		want := append(c.want, line{Type: "number_of_executions", Count: i + 1}, end)
		if diff := cmp.Diff(want, r.execute(id, c.body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.body, diff)
		}
	}
	if got := r.execute(id, `{"code":"x","language":"js"}`); len(got) == 0 || got[0].Name != "NameError" {
		t.Errorf("another language knows x: %+v", got)
	}
}

func TestExecuteRefused(t *testing.T) {
	r := serveCode(t)
	id, paused := r.open(cove.Spec{}), r.open(cove.Spec{User: "b"})
	if _, err := r.platform().Sessions().Stop(t.Context(), paused); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		id     cove.ID
		body   string
		header []string
		want   int
	}{
		"no JSON":          {id, "{", nil, http.StatusBadRequest},
		"another type":     {id, `{"code":1}`, nil, http.StatusBadRequest},
		"both":             {id, `{"code":"1","context_id":"python","language":"python"}`, nil, http.StatusBadRequest},
		"no such context":  {id, `{"code":"1","context_id":"none"}`, nil, http.StatusNotFound},
		"no such language": {id, `{"code":"1","language":"r"}`, nil, http.StatusBadRequest},
		"bad variable":     {id, `{"code":"1","env_vars":{"a-b":"1"}}`, nil, http.StatusBadRequest},
		"too long":         {id, `{"code":"` + strings.Repeat("1", 5<<20) + `"}`, nil, http.StatusTooManyRequests},
		"no token":         {id, `{"code":"1"}`, []string{"X-Access-Token", ""}, http.StatusUnauthorized},
		"another's token":  {id, `{"code":"1"}`, []string{"X-Access-Token", r.tokenOf("access", paused, "tester")}, http.StatusUnauthorized},
		"stopped":          {paused, `{"code":"1"}`, nil, http.StatusBadGateway},
		"not there":        {cove.NewID(), `{"code":"1"}`, nil, http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			if got, text := r.code(c.id, http.MethodPost, "/execute", c.body, c.header...); got != c.want {
				t.Errorf("answered %d %.200s, want %d", got, text, c.want)
			}
		})
	}
}

// TestExecuteInTheEnd: what goes wrong after the answer has begun is a line.
func TestExecuteInTheEnd(t *testing.T) {
	r := serveCode(t)
	id := r.open(cove.Spec{})
	got := r.execute(id, `{"code":"1","language":"typescript"}`) // nothing here speaks it
	if len(got) != 2 || got[0].Type != "error" || got[0].Name != "invalid" || got[1].Type != "end_of_execution" {
		t.Errorf("it said %+v", got)
	}
	if got := r.execute(id, `{"code":"die"}`); len(got) == 0 || got[0].Name != "KernelDied" {
		t.Errorf("it said %+v", got)
	}
	if got := r.execute(id, `{"code":"1"}`); len(got) != 3 || got[1].Count != 1 {
		t.Errorf("a fresh interpreter said %+v", got)
	}
}

// TestExecuteBlocked: code that policy refuses is an error of the code.
func TestExecuteBlocked(t *testing.T) {
	r := serveCode(t)
	id := r.open(cove.Spec{Policy: "agent-bash"})
	got := r.execute(id, `{"code":"rm -rf /","language":"bash"}`)
	if len(got) != 3 || got[0].Name != "PolicyError" || got[0].Value == "" || got[1].Count != 0 {
		t.Errorf("it said %+v", got)
	}
}

// TestExecuteLeft: a client that goes away stops the code, and what was kept stays.
func TestExecuteLeft(t *testing.T) {
	r := serveCode(t)
	id := r.open(cove.Spec{})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	resp := r.do(r.inside(ctx, id, codePort, http.MethodPost, "/execute", strings.NewReader(`{"code":"x = 7\nprint(x)\nloop"}`)))
	defer resp.Body.Close()
	if text, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || !strings.Contains(text, `"7\n"`) {
		t.Fatalf("it said %q, %v", text, err)
	}
	leave()
	// It waits for its turn, which comes when the first one has been stopped.
	if got := r.execute(id, `{"code":"x"}`); len(got) != 3 || got[0].Text != "7" {
		t.Errorf("afterwards it said %+v", got)
	}
}

func TestContexts(t *testing.T) {
	r := serveCode(t)
	id := r.open(cove.Spec{PublicPorts: true})
	bare := []string{"X-Access-Token", ""} // as clients call
	type entry struct{ ID, Language, Cwd string }
	list := func() []entry {
		t.Helper()
		var all []entry
		status, text := r.code(id, http.MethodGet, "/contexts", "", bare...)
		if err := json.Unmarshal([]byte(text), &all); err != nil || status != http.StatusOK {
			t.Fatalf("answered %d %s", status, text)
		}
		return all
	}
	standing := []entry{{"python", "python", "/home/user"}, {"node", "javascript", "/home/user"}}
	if diff := cmp.Diff(standing, list()); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	if err := r.platform().Files(id).Mkdir(t.Context(), "/workspace/d"); err != nil {
		t.Fatal(err)
	}
	var made entry
	status, text := r.code(id, http.MethodPost, "/contexts", `{"language":"js","cwd":"/home/user/d"}`, bare...)
	if err := json.Unmarshal([]byte(text), &made); err != nil || status != http.StatusOK || made.Language != "javascript" || made.Cwd != "/home/user/d" {
		t.Fatalf("answered %d %s", status, text)
	}
	if diff := cmp.Diff(append([]entry{made}, standing...), list()); diff != "" {
		t.Errorf("with one more (-want +got):\n%s", diff)
	}
	run := func(code string) line {
		return r.execute(id, fmt.Sprintf(`{"code":%q,"context_id":%q}`, code, made.ID))[0]
	}
	run("x = 5")
	if got := run("x"); got.Text != "5" {
		t.Errorf("it said %+v", got)
	}
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{http.MethodPost, "/contexts/" + made.ID + "/restart", http.StatusOK},
		{http.MethodPost, "/contexts/python/restart", http.StatusOK},
		{http.MethodPost, "/contexts/none/restart", http.StatusNotFound},
		{http.MethodDelete, "/contexts/none", http.StatusNotFound},
	} {
		if got, text := r.code(id, c.method, c.path, "", bare...); got != c.want {
			t.Errorf("%s %s answered %d %s", c.method, c.path, got, text)
		}
	}
	if got := run("x"); got.Name != "NameError" {
		t.Errorf("after a restart it said %+v", got)
	}
	if got, text := r.code(id, http.MethodDelete, "/contexts/"+made.ID, "", bare...); got != http.StatusOK {
		t.Errorf("answered %d %s", got, text)
	}
	if diff := cmp.Diff(standing, list()); diff != "" {
		t.Errorf("in the end (-want +got):\n%s", diff)
	}
}

func TestContextsRefused(t *testing.T) {
	r := serveCode(t)
	public, private := r.open(cove.Spec{PublicPorts: true}), r.open(cove.Spec{User: "b"})
	bare := []string{"X-Access-Token", ""}
	for name, c := range map[string]struct {
		id     cove.ID
		body   string
		header []string
		want   int
	}{
		"language":        {public, `{"language":"java"}`, bare, http.StatusBadRequest},
		"no JSON":         {public, `[]`, bare, http.StatusBadRequest},
		"directory":       {public, `{"cwd":"a\u0000b"}`, bare, http.StatusBadRequest},
		"not public":      {private, `{}`, bare, http.StatusUnauthorized},
		"traffic token":   {private, `{}`, append(bare, "E2b-Traffic-Access-Token", r.tokenOf("traffic", private, "tester")), http.StatusOK},
		"token of others": {private, `{}`, append(bare, "E2b-Traffic-Access-Token", r.tokenOf("traffic", public, "tester")), http.StatusUnauthorized},
		"not there":       {cove.NewID(), `{}`, nil, http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			if got, text := r.code(c.id, http.MethodPost, "/contexts", c.body, c.header...); got != c.want {
				t.Errorf("answered %d %s, want %d", got, text, c.want)
			}
		})
	}
}

// TestContextsWithoutAToken: who shows nothing cannot fill a sandbox with contexts.
func TestContextsWithoutAToken(t *testing.T) {
	r := serveCode(t)
	id := r.open(cove.Spec{PublicPorts: true})
	for range 8 {
		if _, err := r.platform().Contexts(id).Open(t.Context(), cove.ContextSpec{Language: "python"}); err != nil {
			t.Fatal(err)
		}
	}
	if got, text := r.code(id, http.MethodPost, "/contexts", `{}`, "X-Access-Token", ""); got != http.StatusTooManyRequests {
		t.Errorf("answered %d %s", got, text)
	}
	if got, text := r.code(id, http.MethodPost, "/contexts", `{}`); got != http.StatusOK {
		t.Errorf("with the token it answered %d %s", got, text)
	}
}

func TestInterpreterHealth(t *testing.T) {
	r := serveCode(t)
	id := r.open(cove.Spec{})
	if got, text := r.code(id, http.MethodGet, "/health", "", "X-Access-Token", ""); got != http.StatusOK || text != `"OK"` {
		t.Errorf("answered %d %s", got, text)
	}
	if err := func() error { _, err := r.platform().Sessions().Close(t.Context(), id, false); return err }(); err != nil {
		t.Fatal(err)
	}
	if got, text := r.code(id, http.MethodGet, "/health", ""); got != http.StatusBadGateway {
		t.Errorf("afterwards it answered %d %s", got, text)
	}
}
