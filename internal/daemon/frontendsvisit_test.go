package daemon_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/e2bapi"
)

// visit reaches one session with one key through the front ends. Tokens and links that
// the key was given once are kept, so that they are tried again after it was revoked.
type visit struct {
	t      *testing.T
	b      *bench
	id     cove.ID
	opener string

	keyID  cove.ID
	secret string
	key    cove.Principal
	client *client.Client
	domain *http.Client // finds the hosts of E2B's domain

	handles map[string]string // tokens, URLs and cookies, "" for those that were refused
	session *mcp.ClientSession
}

func (v *visit) close() {
	if v.session != nil {
		_ = v.session.Close() // of a revoked key it is refused
	}
	v.domain.CloseIdleConnections()
}

// handle returns what the key was given under a name, and asks for it once.
func (v *visit) handle(name string, ask func() string) string {
	if _, ok := v.handles[name]; !ok {
		v.handles[name] = ask()
	}
	return v.handles[name]
}

// path is a path of the session in the REST API.
func (v *visit) path(below string) string {
	return v.b.r.URL + "/api/sandboxes/" + string(v.id) + below
}

func (v *visit) rest(method, below, body string) bool {
	v.t.Helper()
	got := call(v.t, http.DefaultClient, method, v.path(below), body, "Authorization", "Bearer "+v.secret, "Content-Type", typeOf(method))
	return v.done(method+" "+below, got.status, got.body)
}

// restAt sends a request about something else than the session; one about what is not
// there was not refused.
func (v *visit) restAt(method, path string) bool {
	v.t.Helper()
	got := call(v.t, http.DefaultClient, method, v.b.r.URL+path, "", "Authorization", "Bearer "+v.secret)
	return got.status == http.StatusNotFound || v.done(method+" "+path, got.status, got.body)
}

// restOpen opens a session, which is closed again.
func (v *visit) restOpen() bool {
	v.t.Helper()
	got := call(v.t, http.DefaultClient, "POST", v.b.r.URL+"/api/sandboxes", "{}", "Authorization", "Bearer "+v.secret)
	var made struct {
		ID cove.ID `json:"session_id"`
	}
	return v.done("open", got.status, got.body) && v.opened(got.body, &made, &made.ID)
}

// opened closes the session that an answer names.
func (v *visit) opened(answer string, into any, id *cove.ID) bool {
	v.t.Helper()
	if err := json.Unmarshal([]byte(answer), into); err != nil || *id == "" {
		v.t.Fatalf("%s names no session: %v", answer, err)
	}
	if _, err := v.b.owner.Sessions().Close(v.t.Context(), *id, false); err != nil {
		v.t.Error(err)
	}
	return true
}

// terminal asks for a terminal over a WebSocket.
func (v *visit) terminal() bool {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.path("/terminal"), nil)
	if err != nil {
		v.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + v.secret, "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
	} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusSwitchingProtocols || v.done("terminal", resp.StatusCode, resp.Status)
}

// typeOf is the media type of a body: files are sent with PUT, everything else is JSON.
func typeOf(method string) string {
	if method == http.MethodPut {
		return "application/octet-stream"
	}
	return "application/json"
}

// console sends a request with the cookie of a browser that the key signed in.
func (v *visit) console(method, below, body string) bool {
	v.t.Helper()
	cookie := v.handle("cookie", func() string {
		link, err := v.client.Links().Login(v.t.Context(), 0)
		if err != nil {
			return ""
		}
		form := url.Values{"ticket": {queryOf(v.t, link.URL, "ticket")}}.Encode()
		req, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, v.b.r.URL+"/login", strings.NewReader(form))
		if err != nil {
			v.t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			v.t.Fatal(err)
		}
		defer resp.Body.Close()
		for _, c := range resp.Cookies() {
			return c.Name + "=" + c.Value
		}
		v.t.Fatalf("signing in gives no cookie: %s", resp.Status)
		return ""
	})
	if cookie == "" {
		return false
	}
	got := call(v.t, http.DefaultClient, method, v.path(below), body, "Cookie", cookie, "Content-Type", typeOf(method))
	return v.done("console: "+method+" "+below, got.status, got.body)
}

func queryOf(t *testing.T, address, name string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get(name)
}

func (v *visit) e2b(method, path, body string) bool { return v.e2bJSON(method, path, body, nil) }

func (v *visit) e2bJSON(method, path, body string, into any) bool {
	v.t.Helper()
	got := call(v.t, http.DefaultClient, method, v.b.r.URL+path, body, "X-API-Key", v.secret, "Content-Type", "application/json")
	if !v.done("E2B: "+method+" "+path, got.status, got.body) {
		return false
	}
	if into != nil {
		if err := json.Unmarshal([]byte(got.body), into); err != nil {
			v.t.Fatalf("%s: %v", got.body, err)
		}
	}
	return true
}

// e2bOpen opens a sandbox, which is ended again.
func (v *visit) e2bOpen() bool {
	v.t.Helper()
	got := call(v.t, http.DefaultClient, "POST", v.b.r.URL+"/sandboxes", `{"timeout":600}`, "X-API-Key", v.secret, "Content-Type", "application/json")
	var made struct{ SandboxID cove.ID }
	return v.done("E2B: open", got.status, got.body) && v.opened(got.body, &made, &made.SandboxID)
}

// e2bBuild begins a template build; a tenant has a bound on those.
func (v *visit) e2bBuild() bool {
	v.t.Helper()
	got := call(v.t, http.DefaultClient, "POST", v.b.r.URL+"/v3/templates", `{"name":"app"}`, "X-API-Key", v.secret, "Content-Type", "application/json")
	return got.status == http.StatusTooManyRequests || v.done("E2B: build", got.status, got.body)
}

// access asks for the access token.
func (v *visit) access() string {
	return v.handle("access", func() string {
		var box struct{ EnvdAccessToken string }
		v.e2bJSON("GET", "/sandboxes/"+string(v.id), "", &box)
		return box.EnvdAccessToken
	})
}

// envd sends a request to the agent of the sandbox.
func (v *visit) envd(method, path, body string, header ...string) bool {
	v.t.Helper()
	got := v.agent(method, path, body, header...)
	return v.done("envd: "+method+" "+path, got.status, got.body)
}

func (v *visit) agent(method, path, body string, header ...string) said {
	v.t.Helper()
	kind := "application/json"
	if strings.HasPrefix(path, "/files?") {
		kind = "application/octet-stream"
	}
	header = append([]string{"E2b-Sandbox-Id", string(v.id), "E2b-Sandbox-Port", "49983", "X-Access-Token", v.access(), "Content-Type", kind}, header...)
	return call(v.t, http.DefaultClient, method, v.b.r.URL+path, body, header...)
}

func (v *visit) e2bRun() bool {
	return v.e2bStart(`{"process":{"cmd":"echo","args":["hello"]},"stdin":false}`)
}

// e2bStart starts a program, whose output comes in frames: the refusal is in the last one.
func (v *visit) e2bStart(message string) bool {
	v.t.Helper()
	frame := string([]byte{0, 0, 0, 0, byte(len(message))}) + message
	got := v.agent("POST", "/process.Process/Start", frame, "Content-Type", "application/connect+json")
	if got.status != http.StatusOK {
		return v.done("envd: start", got.status, got.body)
	}
	refused := strings.Contains(got.body, `"permission_denied"`) || strings.Contains(got.body, `"unauthenticated"`) || strings.Contains(got.body, `"unavailable"`)
	if ran := strings.Contains(got.body, `"start"`); ran == refused {
		v.t.Errorf("envd: start: %s", got.body)
	}
	return !refused
}

// signed follows a signed URL of a file, which names no sandbox.
func (v *visit) signed(method, operation string) bool {
	v.t.Helper()
	token := v.access()
	if token == "" {
		return false
	}
	query := url.Values{"path": {"f"}, "signature": {e2bapi.Sign("f", operation, "", token, 0)}}
	got := call(v.t, http.DefaultClient, method, v.b.r.URL+"/files?"+query.Encode(), "x", "Content-Type", "application/octet-stream")
	return v.done("signed URL: "+operation, got.status, got.body)
}

// e2bPort reaches a port of the sandbox, which is not public.
func (v *visit) e2bPort() bool {
	v.t.Helper()
	token := v.handle("traffic", func() string {
		var box struct{ TrafficAccessToken string }
		v.e2bJSON("POST", "/sandboxes/"+string(v.id)+"/connect", `{"timeout":1}`, &box)
		return box.TrafficAccessToken
	})
	got := call(v.t, v.domain, "GET", "https://3000-"+string(v.id)+"."+v.b.r.E2BDomain+"/", "", "E2B-Traffic-Access-Token", token)
	return v.done("port of E2B's domain", got.status, got.body)
}

// mcp calls a tool and returns its structured answer, "" when it was refused.
func (v *visit) mcp(tool string, args map[string]any) string {
	v.t.Helper()
	if v.session == nil {
		var err error
		v.session, err = mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(v.t.Context(), &mcp.StreamableClientTransport{
			Endpoint: v.b.r.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer{v.secret}}, MaxRetries: -1,
		}, nil)
		if err != nil {
			v.t.Fatal(err)
		}
	}
	if v.id != "" && tool != "get_sessions" {
		args["session_id"] = string(v.id)
	}
	got, err := v.session.CallTool(v.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "" // the whole MCP session is refused
	}
	text, err := json.Marshal(got.StructuredContent)
	if err != nil {
		v.t.Fatal(err)
	}
	if !got.IsError {
		return string(text)
	}
	if s := string(text); !strings.Contains(s, `"denied"`) && !strings.Contains(s, `"not_found"`) && !strings.Contains(s, `"unauthenticated"`) {
		v.t.Errorf("%s: %s", tool, s)
	}
	return ""
}

// mcpOpen runs a program in a session of the MCP session's own, which is closed again.
func (v *visit) mcpOpen() bool {
	v.t.Helper()
	id := v.id
	v.id = ""
	answer := v.mcp("execute_command", map[string]any{"command": "echo hello"})
	v.id = id
	var made struct {
		Session cove.ID `json:"session_id"`
	}
	return answer != "" && v.opened(answer, &made, &made.Session)
}

// rpc asks what answers clients of microsandbox, and returns "" when it was refused. A
// sandbox that is not there is an internal error in that protocol.
func (v *visit) rpc(method, params string) string {
	v.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"namespace":"team","sandbox":"s1"` + params + `}}`
	got := call(v.t, http.DefaultClient, "POST", v.b.r.URL+"/api/v1/rpc", body, "Authorization", "Bearer "+v.secret)
	if strings.Contains(got.body, "there is no sandbox") || !v.done("rpc: "+method, got.status, got.body) {
		return ""
	}
	return got.body
}

// follow makes a link to a file and follows it without a key.
func (v *visit) follow(method string, upload bool) bool {
	v.t.Helper()
	to := v.handle("link "+method, func() string {
		ask := v.client.Links().Download
		if upload {
			ask = v.client.Links().Upload
		}
		link, err := ask(v.t.Context(), cove.FileLink{Session: v.id, Path: "f"})
		if err != nil {
			return ""
		}
		return link.URL
	})
	if to == "" {
		return false
	}
	got := call(v.t, http.DefaultClient, method, to, "x", "Content-Type", "application/octet-stream")
	return v.done("link: "+method, got.status, got.body)
}

// preview opens the link to a port in a browser.
func (v *visit) preview() bool {
	v.t.Helper()
	to := v.handle("preview "+string(v.id), func() string {
		link, err := v.client.Links().Port(v.t.Context(), cove.PortLink{Session: v.id, Port: 3000})
		if err != nil {
			return ""
		}
		return link.URL
	})
	if to == "" {
		return false
	}
	u, err := url.Parse(to)
	if err != nil {
		v.t.Fatal(err)
	}
	status, body := fetch(v.t, browser(v.t, "127.0.0.1:"+u.Port()), "GET", to, "")
	return v.done("preview", status, body)
}
