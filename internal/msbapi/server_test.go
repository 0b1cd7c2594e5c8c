package msbapi_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/msbapi"
)

const image = `"image":"microsandbox/python","memory":512,"cpus":1`

func TestHealthNeedsNoKey(t *testing.T) {
	r := serve(t)
	for _, tc := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", msbapi.HealthPath, http.StatusOK, `{"message":"Service is healthy"}`},
		{"POST", msbapi.HealthPath, http.StatusMethodNotAllowed, `{"code":2001,"error":"use GET /api/v1/health or POST /api/v1/rpc"}`},
		{"GET", msbapi.RPCPath, http.StatusMethodNotAllowed, `{"code":2001,"error":"use GET /api/v1/health or POST /api/v1/rpc"}`},
		{"GET", "/elsewhere", http.StatusNotFound, `{"code":2001,"error":"there are only /api/v1/health and /api/v1/rpc"}`},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, r.server.URL+tc.path, strings.NewReader("x"))
		must(t, err)
		if status, body := r.send(req); status != tc.status || body != tc.body {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, status, body)
		}
	}
}

func TestASandboxLives(t *testing.T) {
	r := serve(t)
	r.started(image + `,"envs":["A=1"],"workdir":"/workspace/in","shell":"/bin/sh","scripts":{},"ports":[],"depends_on":null`)
	for _, tc := range []struct{ params, want string }{
		{
			`"command":"sh","args":["-c","echo out; echo err >&2; exit 7"],"timeout":30`,
			`{"command":"sh","args":["-c","echo out; echo err \u003e\u00262; exit 7"],"exit_code":7,"success":false,"output":[{"stream":"stdout","text":"out"},{"stream":"stderr","text":"err"}]}`,
		},
		{`"command":"pwd"`, `{"command":"pwd","args":[],"exit_code":0,"success":true,"output":[{"stream":"stdout","text":"/workspace/in"}]}`},
		{`"command":"sh","args":["-c","echo $A"]`, `{"command":"sh","args":["-c","echo $A"],"exit_code":0,"success":true,"output":[{"stream":"stdout","text":"1"}]}`},
		{
			`"command":"sh","args":["-c","printf 'a\\n\\nb'"]`,
			`{"command":"sh","args":["-c","printf 'a\\n\\nb'"],"exit_code":0,"success":true,"output":[{"stream":"stdout","text":"a"},{"stream":"stdout","text":""},{"stream":"stdout","text":"b"}]}`,
		},
		{`"command":"printf","args":["\\377x"]`, `{"command":"printf","args":["\\377x"],"exit_code":0,"success":true,"output":[{"stream":"stdout","text":"` + "\uFFFD" + `x"}]}`},
	} {
		if diff := cmp.Diff(tc.want, r.result("sandbox.command.run", s1+","+tc.params)); diff != "" {
			t.Errorf("%s: %s", tc.params, diff)
		}
	}
	for _, tc := range []struct{ params, want string }{
		{`"language":"python","code":"x = 6 * 7"`, `{"status":"success","language":"python","output":[]}`},
		{`"language":"python","code":"print(x)\nx + 1","timeout":10`, `{"status":"success","language":"python","output":[{"stream":"stdout","text":"42"},{"stream":"stdout","text":"43"}]}`},
		{`"language":"javascript","code":"warn(\"w\")"`, `{"status":"success","language":"javascript","output":[{"stream":"stderr","text":"w"}]}`},
		{`"language":"python","code":"raise Trouble here"`, `{"status":"success","language":"python","output":[{"stream":"stderr","text":"line 1"},{"stream":"stderr","text":"Trouble: here"}]}`},
	} {
		if diff := cmp.Diff(tc.want, r.result("sandbox.repl.run", s1+","+tc.params)); diff != "" {
			t.Errorf("%s: %s", tc.params, diff)
		}
	}
	metrics := r.result("sandbox.metrics.get", s1)
	if ok, _ := regexp.MatchString(`^\{"sandboxes":\[\{"namespace":"default","name":"s1","running":true,"cpu_usage":[0-9.e-]+,"memory_usage":\d+,"disk_usage":\d+\}\]\}$`, metrics); !ok {
		t.Error(metrics)
	}
	for _, p := range []string{`"namespace":"default"`, `"namespace":"*"`, `"namespace":"*","sandbox":"s1"`} {
		if got := r.result("sandbox.metrics.get", p); !strings.Contains(got, `"name":"s1"`) {
			t.Errorf("%s: %s", p, got)
		}
	}
	if got := r.result("sandbox.metrics.get", `"namespace":"other"`); got != `{"isolation":`+told+`,"sandboxes":[]}` {
		t.Error(got)
	}
	if got := r.result("sandbox.stop", s1); got != `"Sandbox s1 stopped successfully"` {
		t.Error(got)
	}
	if got := r.result("sandbox.metrics.get", `"namespace":"default"`); got != `{"isolation":`+told+`,"sandboxes":[]}` {
		t.Error(got)
	}
}

func TestASandboxOfAnotherConfigIsReplaced(t *testing.T) {
	r := serve(t)
	has := func(want bool) {
		t.Helper()
		if got := strings.Contains(r.result("sandbox.command.run", s1+`,"command":"ls"`), "kept"); got != want {
			t.Errorf("the file is there: %v", got)
		}
	}
	r.started(image)
	r.result("sandbox.command.run", s1+`,"command":"touch","args":["kept"]`)
	r.started(image)
	has(true)
	r.started(``) // what is there
	has(true)
	r.started(`"image":"microsandbox/node:latest","memory":512,"cpus":1`)
	has(false)
	s := r.sessions()
	if len(s) != 1 || s[0].Spec.Template != "node" || s[0].Spec.Resources.Memory != 512*cove.MiB || s[0].Spec.Resources.CPUs != 1 || s[0].Spec.User != "msb:default" || s[0].Spec.Thread != "s1" {
		t.Errorf("%+v", s)
	}
}

func TestASandboxThatWasStoppedComesBack(t *testing.T) {
	r := serve(t)
	r.started(image)
	r.result("sandbox.command.run", s1+`,"command":"touch","args":["kept"]`)
	if _, err := r.engine.As(principals[allKey]).Sessions().Stop(t.Context(), r.sessions()[0].ID); err != nil {
		t.Fatal(err)
	}
	if got := r.result("sandbox.metrics.get", s1); got != `{"sandboxes":[{"namespace":"default","name":"s1","running":false,"cpu_usage":null,"memory_usage":null,"disk_usage":null}]}` {
		t.Error(got)
	}
	if got := r.result("sandbox.command.run", s1+`,"command":"ls"`); !strings.Contains(got, "kept") {
		t.Error(got)
	}
}

func (r *rig) sessions() (all []*cove.Session) {
	r.t.Helper()
	for s, err := range r.engine.As(principals[allKey]).Sessions().List(r.t.Context(), cove.SessionFilter{Project: msbapi.Project}) {
		must(r.t, err)
		all = append(all, s)
	}
	return all
}

func TestRequestsThatCannotBe(t *testing.T) {
	r := serve(t)
	r.started(image)
	internal := func(detail string) string {
		return `{"code":5002,"detail":"` + detail + `","error":"Internal server error"}`
	}
	params := func(text string) string { return `{"code":2001,"error":"` + text + `"}` }
	for _, tc := range []struct {
		method, params string
		status         int
		want           string
	}{
		{"sandbox.begin", s1, 404, `{"error":{"code":-32601,"message":"Method not found: sandbox.begin"},"id":7,"jsonrpc":"2.0"}`},
		{"sandbox.start", `"namespace":"default","sandbox":"s2"`, 400, params("Sandbox configuration not found: config.image says what to start the sandbox from")},
		{"sandbox.start", s1 + `,"config":{"image":"ubuntu"}`, 400, params(`there is no image \"ubuntu\" here; use one of microsandbox/python, microsandbox/node, base, node`)},
		{"sandbox.start", s1 + `,"config":{` + image + `,"ports":["80:80"]}`, 400, params("config.ports: ports of the host are not published; make a link to a port with cove sandbox port")},
		{"sandbox.start", s1 + `,"config":{` + image + `,"depends_on":["x"]}`, 400, params("config.depends_on: sandboxes do not start one another")},
		{"sandbox.start", s1 + `,"config":{` + image + `,"scripts":{"start":"x"}}`, 400, params("config.scripts: there are no scripts; run commands")},
		{"sandbox.start", s1 + `,"config":{` + image + `,"exec":"x"}`, 400, params("config.exec: a sandbox starts nothing by itself; run a command")},
		{"sandbox.start", s1 + `,"config":{` + image + `,"envs":["A"]}`, 400, params(`config.envs: \"A\" is not NAME=value`)},
		{"sandbox.start", s1 + `,"config":{` + image + `,"volumes":["/a"]}`, 400, params(`config.volumes: \"/a\" is not host:guest or host:guest:ro`)},
		{"sandbox.start", s1 + `,"config":{` + image + `,"workdir":"in"}`, 400, params("config.workdir must begin with /")},
		{"sandbox.start", s1 + `,"config":{"image":"base","memory":-1}`, 400, params("config.memory: -1 MiB is no size of a sandbox")},
		{"sandbox.start", s1 + `,"config":{"image":"base","cpus":0}`, 400, params("config.cpus must be more than 0")},
		{"sandbox.start", `"namespace":"","sandbox":"s1"`, 400, params("Namespace cannot be empty")},
		{"sandbox.start", `"namespace":"*","sandbox":"s1"`, 400, params("Namespace may have letters, digits, - and _, and begins with a letter or a digit")},
		{"sandbox.start", `"namespace":"a","sandbox":"../b"`, 400, params("Sandbox name may have letters, digits, - and _, and begins with a letter or a digit")},
		{"sandbox.start", `"namespace":"a","sandbox":"` + strings.Repeat("b", 64) + `"`, 400, params("Sandbox name cannot be longer than 63 characters")},
		{"sandbox.start", `"namespace":1`, 400, params("Invalid parameters: json: cannot unmarshal number into Go struct field params.namespace of type string")},
		{"sandbox.stop", `"namespace":"nowhere","sandbox":"s1"`, 400, params("Namespace directory 'nowhere' does not exist")},
		{"sandbox.stop", `"namespace":"default","sandbox":"s2"`, 500, internal("there is no sandbox s2 in the namespace default; start it with sandbox.start")},
		{"sandbox.command.run", `"namespace":"default","sandbox":"s2","command":"true"`, 500, internal("there is no sandbox s2 in the namespace default; start it with sandbox.start")},
		{"sandbox.command.run", s1, 400, params("command says which program to run")},
		{"sandbox.command.run", s1 + `,"command":"no-such-program"`, 500, internal("no-such-program: command not found")},
		{"sandbox.command.run", s1 + `,"command":"true","timeout":0`, 400, params("timeout must be more than 0 seconds")},
		{"sandbox.command.run", s1 + `,"command":"sleep","args":["60"],"timeout":0.01`, 500, internal("the command did not end within 10ms")},
		{"sandbox.repl.run", s1 + `,"language":"cobol","code":"x"`, 500, internal(`the language \"cobol\" is unknown; use python or node`)},
		{"sandbox.repl.run", s1 + `,"language":"python","code":"x","timeout":-1`, 400, params("timeout must be more than 0 seconds")},
		{"sandbox.repl.run", s1 + `,"language":"python","code":"loop","timeout":0.01`, 500, internal("the code did not end within 10ms")},
		{"sandbox.repl.run", `"namespace":"default","sandbox":"s2","language":"python","code":"x"`, 500, internal("there is no sandbox s2 in the namespace default; start it with sandbox.start")},
	} {
		status, text := r.ask(allKey, tc.method, tc.params)
		if diff := cmp.Diff(tc.want, text); diff != "" || status != tc.status {
			t.Errorf("%s %s: status %d: %s", tc.method, tc.params, status, diff)
		}
	}
}

func TestBodiesThatAreNoRequests(t *testing.T) {
	r := serve(t)
	envelope := func(id string, code int, text string) string {
		return fmt.Sprintf(`{"error":{"code":%d,"message":"%s"},"id":%s,"jsonrpc":"2.0"}`, code, text, id)
	}
	for _, tc := range []struct {
		body   string
		status int
		want   string
	}{
		{`{`, 400, envelope("null", -32700, "the request is not JSON")},
		{``, 400, envelope("null", -32700, "the request is not JSON")},
		{`[]`, 400, envelope("null", -32600, "one request at a time, as a JSON object")},
		{`{"jsonrpc":2}`, 400, envelope("null", -32600, "jsonrpc and method must be strings")},
		{`{"method":"sandbox.start","id":{"a":[1]}}`, 400, envelope(`{"a":[1]}`, -32600, "Invalid or missing jsonrpc version field")},
		{`{"jsonrpc":"2.0","id":"x","method":"` + strings.Repeat("m", 200) + `"}`, 404, envelope(`"x"`, -32601, "Method not found: "+strings.Repeat("m", 100)+"…")},
		{`{"jsonrpc":"2.0","method":"sandbox.start"}`, 400, `{"code":2001,"error":"Namespace cannot be empty"}`},
		{`{"x":"` + strings.Repeat("y", 4<<20) + `"}`, 413, `{"code":2001,"error":"the request is longer than 4 MiB"}`},
	} {
		status, text := r.post(allKey, tc.body)
		if diff := cmp.Diff(tc.want, text); diff != "" || status != tc.status {
			t.Errorf("%.80s: status %d: %s", tc.body, status, diff)
		}
	}
}

func TestWhoMayWhat(t *testing.T) {
	r := serve(t)
	r.started(image)
	denied := `{"code":3001,"error":"Access denied"}`
	for name, tc := range map[string]struct {
		key, method, params string
		status              int
		want                string
	}{
		"no key":            {"", "sandbox.stop", s1, 401, `{"code":1001,"error":"Invalid credentials"}`},
		"a key of nobody's": {"other_key", "sandbox.stop", s1, 401, `{"code":1001,"error":"Invalid credentials"}`},
		"a wrong key":       {"msb_wrong", "sandbox.stop", s1, 401, `{"code":1004,"detail":"no valid key was shown","error":"Invalid or expired token"}`},
		"too often":         {hastyKey, "sandbox.stop", s1, 429, `{"code":5002,"detail":"too often","error":"Too many requests"}`},
		"a broken store":    {brokenKey, "sandbox.stop", s1, 500, `{"code":5002,"detail":"the store is gone","error":"Internal server error"}`},
		"another namespace": {teamKey, "sandbox.stop", s1, 403, denied},
		"every namespace":   {teamKey, "sandbox.metrics.get", `"namespace":"*"`, 403, denied},
		"its own namespace": {teamKey, "sandbox.metrics.get", `"namespace":"team"`, 200, `{"jsonrpc":"2.0","result":{"isolation":` + told + `,"sandboxes":[]},"id":7}`},
		"another tenant":    {otherKey, "sandbox.stop", s1, 400, `{"code":2001,"error":"Namespace directory 'default' does not exist"}`},
		"another tenant's":  {otherKey, "sandbox.metrics.get", `"namespace":"*"`, 200, `{"jsonrpc":"2.0","result":{"isolation":` + told + `,"sandboxes":[]},"id":7}`},
		"who may only look": {lookKey, "sandbox.metrics.get", `"namespace":"nothing"`, 200, `{"jsonrpc":"2.0","result":{"isolation":` + told + `,"sandboxes":[]},"id":7}`},
	} {
		status, text := r.ask(tc.key, tc.method, tc.params)
		if diff := cmp.Diff(tc.want, text); diff != "" || status != tc.status {
			t.Errorf("%s: status %d: %s", name, status, diff)
		}
	}
	if status, text := r.ask(lookKey, "sandbox.command.run", s1+`,"command":"true"`); status != 403 || !strings.HasPrefix(text, `{"code":3001,"detail":"`) {
		t.Errorf("who may only look runs: %d %s", status, text)
	}
	for _, header := range []string{"Proxy-Authorization", "Authorization"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.server.URL+msbapi.RPCPath, strings.NewReader(`{"jsonrpc":"2.0","method":"sandbox.metrics.get","params":{"namespace":"team"}}`))
		must(t, err)
		req.Header.Set("Authorization", "Bearer nonsense")
		req.Header.Set(header, teamKey) // Bearer may be left out
		if status, text := r.send(req); status != http.StatusOK {
			t.Errorf("%s: %d %s", header, status, text)
		}
	}
}

func TestVolumesAreThoseOfTheList(t *testing.T) {
	dir := t.TempDir()
	r := serve(t, func(c *engine.Config) { c.Volumes = []string{dir} })
	volumes := func(list string) (int, string) {
		return r.ask(allKey, "sandbox.start", s1+`,"config":{`+image+`,"volumes":["`+list+`"]}`)
	}
	if status, text := volumes(dir + ":/data:ro"); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	for _, list := range []string{dir + ":/data", filepath.Dir(dir) + ":/data:ro", "/etc:/data:ro"} {
		if status, text := volumes(list); status != http.StatusBadRequest && status != http.StatusForbidden {
			t.Errorf("%s: %d %s", list, status, text)
		}
	}
}

func TestPolicyRefuses(t *testing.T) {
	r := serve(t, func(c *engine.Config) { c.Defaults.Policy = "agent-bash" })
	r.started(image)
	got := r.result("sandbox.command.run", s1+`,"command":"sudo","args":["ls"]`)
	if !strings.Contains(got, `"exit_code":126,"success":false,"output":[{"stream":"stderr","text":"refused by policy: `) {
		t.Error(got)
	}
}

func TestOutputHasABound(t *testing.T) {
	const full = "bytes more did not fit into the answer; write to a file and read it in parts"
	for name, tc := range map[string]struct {
		room   int
		pieces []string
		want   []string
	}{
		"all of it":         {1000, []string{"a\nb", "c\n", "d"}, []string{"a", "bc", "d"}},
		"a long line":       {100, []string{strings.Repeat("x", 99), "yz\n"}, []string{strings.Repeat("x", 99) + "y", "cove: 1 " + full}},
		"many short lines":  {130, []string{"\n\n\n\n"}, []string{"", "", "cove: 2 " + full}},
		"a line at the end": {66, []string{"a\n", "b", "c"}, []string{"a", "b", "cove: 1 " + full}},
	} {
		if diff := cmp.Diff(tc.want, msbapi.Lines(tc.room, tc.pieces...)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAClientThatLeavesEndsItsProgram(t *testing.T) {
	r := serve(t)
	r.started(image)
	conn, stop := r.leave(`{"jsonrpc":"2.0","id":1,"method":"sandbox.command.run","params":{` + s1 + `,"command":"sleep","args":["3600"]}}`)
	for !r.busy() {
		if t.Context().Err() != nil {
			t.Fatal("the program never ran")
		}
	}
	stop()
	<-conn
	for r.busy() {
		if t.Context().Err() != nil {
			t.Fatal("the program runs on")
		}
	}
}

func (r *rig) busy() bool {
	for _, s := range r.sessions() {
		if s.Busy {
			return true
		}
	}
	return false
}

// TestTenantDisk: a tenant that keeps too much is told so, and what to do about it.
func TestTenantDisk(t *testing.T) {
	r := serve(t, func(c *engine.Config) { c.TenantDisk = 128 * cove.KiB })
	r.started(image)
	run := s1 + `,"command":"seq","args":["1","60000"]`
	s, p := r.sessions()[0], r.engine.As(principals[allKey])
	for err := error(nil); err == nil; {
		_, err = p.Snapshots().Snapshot(t.Context(), s.ID, cove.SnapshotRequest{})
	}
	status, text := r.ask(allKey, "sandbox.command.run", run)
	if status != http.StatusInsufficientStorage || !strings.Contains(text, `"error":"Insufficient storage"`) || !strings.Contains(text, "delete snapshots") {
		t.Errorf("%d %s", status, text)
	}
}
