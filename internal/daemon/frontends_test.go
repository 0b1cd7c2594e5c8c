package daemon_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// frontEnds is the table of the scopes that a key needs to do something with a sandbox of
// its tenant, by the front end that its request comes to. sandbox:read stands where a
// client has to look the sandbox up first, and files:read where the front end looks at the
// file that is to be replaced.
var frontEnds = map[string]map[string]ability{
	"REST": {
		"see a session":      {needs: []cove.Scope{cove.ScopeRead}, try: func(v *visit) bool { return v.rest("GET", "", "") }},
		"run a program":      {needs: []cove.Scope{cove.ScopeExec}, try: func(v *visit) bool { return v.rest("POST", "/execute", `{"command":"echo hello"}`) }},
		"read a file":        {needs: []cove.Scope{cove.ScopeFileRead}, try: func(v *visit) bool { return v.rest("GET", "/files?path=f", "") }},
		"list files":         {needs: []cove.Scope{cove.ScopeFileRead}, try: func(v *visit) bool { return v.rest("GET", "/files/list", "") }},
		"write a file":       {needs: []cove.Scope{cove.ScopeFileWrite}, try: func(v *visit) bool { return v.rest("PUT", "/files?path=g", "x") }},
		"renew a session":    {needs: []cove.Scope{cove.ScopeWrite}, try: func(v *visit) bool { return v.rest("POST", "/renew", `{}`) }},
		"open a session":     {own: true, needs: []cove.Scope{cove.ScopeWrite}, try: (*visit).restOpen},
		"change the network": {needs: []cove.Scope{cove.ScopeWrite}, try: func(v *visit) bool { return v.rest("PUT", "/network", `{"mode":"none"}`) }},
		"take a snapshot":    {needs: []cove.Scope{cove.ScopeWrite}, try: func(v *visit) bool { return v.rest("POST", "/snapshot", `{}`) }},
		"open a terminal":    {needs: []cove.Scope{cove.ScopeExec}, try: (*visit).terminal},
		"build a template":   {own: true, needs: []cove.Scope{cove.ScopeTemplates}, or: cove.ScopeAdmin, try: func(v *visit) bool { return v.restAt("DELETE", "/api/templates/none") }},
		"list datasets":      {own: true, needs: []cove.Scope{cove.ScopeRuns}, try: func(v *visit) bool { return v.restAt("GET", "/api/datasets") }},
		"list keys":          {own: true, needs: []cove.Scope{cove.ScopeAdmin}, try: func(v *visit) bool { return v.restAt("GET", "/api/keys") }},
	},
	"console": {
		"see a session":   {needs: []cove.Scope{cove.ScopeRead}, try: func(v *visit) bool { return v.console("GET", "", "") }},
		"run a program":   {needs: []cove.Scope{cove.ScopeExec}, try: func(v *visit) bool { return v.console("POST", "/execute", `{"command":"echo hello"}`) }},
		"read a file":     {needs: []cove.Scope{cove.ScopeFileRead}, try: func(v *visit) bool { return v.console("GET", "/files?path=f", "") }},
		"write a file":    {needs: []cove.Scope{cove.ScopeFileWrite}, try: func(v *visit) bool { return v.console("PUT", "/files?path=g", "x") }},
		"renew a session": {needs: []cove.Scope{cove.ScopeWrite}, try: func(v *visit) bool { return v.console("POST", "/renew", `{}`) }},
	},
	"E2B": {
		"see a session":                {needs: []cove.Scope{cove.ScopeRead}, try: func(v *visit) bool { return v.e2b("GET", "/sandboxes/"+string(v.id), "") }},
		"run a program":                {needs: []cove.Scope{cove.ScopeExec, cove.ScopeRead}, try: (*visit).e2bRun},
		"read a file":                  {needs: []cove.Scope{cove.ScopeFileRead, cove.ScopeRead}, try: func(v *visit) bool { return v.envd("GET", "/files?path=f", "") }},
		"list files":                   {needs: []cove.Scope{cove.ScopeFileRead, cove.ScopeRead}, try: func(v *visit) bool { return v.envd("POST", "/filesystem.Filesystem/ListDir", `{"path":"/home/user"}`) }},
		"write a file":                 {needs: []cove.Scope{cove.ScopeFileWrite, cove.ScopeFileRead, cove.ScopeRead}, try: func(v *visit) bool { return v.envd("POST", "/files?path=g", "x") }},
		"read a file by a signed URL":  {needs: []cove.Scope{cove.ScopeFileRead, cove.ScopeRead}, try: func(v *visit) bool { return v.signed("GET", "read") }},
		"write a file by a signed URL": {needs: []cove.Scope{cove.ScopeFileWrite, cove.ScopeFileRead, cove.ScopeRead}, try: func(v *visit) bool { return v.signed("POST", "write") }},
		"reach a port":                 {needs: []cove.Scope{cove.ScopeExec, cove.ScopeRead}, try: (*visit).e2bPort},
		"open a session":               {own: true, needs: []cove.Scope{cove.ScopeWrite}, try: (*visit).e2bOpen},
		"open a terminal": {needs: []cove.Scope{cove.ScopeExec, cove.ScopeRead}, try: func(v *visit) bool {
			return v.e2bStart(`{"process":{"cmd":"echo","args":["hello"]},"pty":{"size":{"rows":24,"cols":80}}}`)
		}},
		"change the network": {needs: []cove.Scope{cove.ScopeWrite}, try: func(v *visit) bool {
			return v.e2b("PUT", "/sandboxes/"+string(v.id)+"/network", `{"allow_internet_access":false}`)
		}},
		"take a snapshot":  {needs: []cove.Scope{cove.ScopeWrite}, try: func(v *visit) bool { return v.e2b("POST", "/sandboxes/"+string(v.id)+"/snapshots", `{}`) }},
		"build a template": {own: true, needs: []cove.Scope{cove.ScopeTemplates}, or: cove.ScopeAdmin, try: (*visit).e2bBuild},
		"renew a session":  {needs: []cove.Scope{cove.ScopeWrite, cove.ScopeRead}, try: func(v *visit) bool { return v.e2b("POST", "/sandboxes/"+string(v.id)+"/timeout", `{"timeout":600}`) }},
	},
	"MCP": {
		"open a session": {own: true, needs: []cove.Scope{cove.ScopeWrite, cove.ScopeExec}, try: (*visit).mcpOpen},
		"see a session":  {needs: []cove.Scope{cove.ScopeRead}, try: func(v *visit) bool { return strings.Contains(v.mcp("get_sessions", nil), string(v.id)) }},
		"run a program":  {needs: []cove.Scope{cove.ScopeExec}, try: func(v *visit) bool { return v.mcp("execute_command", map[string]any{"command": "echo hello"}) != "" }},
		"read a file":    {needs: []cove.Scope{cove.ScopeFileRead}, try: func(v *visit) bool { return v.mcp("read_file", map[string]any{"path": "f"}) != "" }},
		"list files":     {needs: []cove.Scope{cove.ScopeFileRead}, try: func(v *visit) bool { return v.mcp("list_files", map[string]any{"path": "."}) != "" }},
		"write a file":   {needs: []cove.Scope{cove.ScopeFileWrite}, try: func(v *visit) bool { return v.mcp("write_file", map[string]any{"path": "g", "content": "x"}) != "" }},
	},
	"microsandbox": {
		"see a session": {needs: []cove.Scope{cove.ScopeRead}, try: func(v *visit) bool { return strings.Contains(v.rpc("sandbox.metrics.get", ""), `"s1"`) }},
		"run a program": {needs: []cove.Scope{cove.ScopeExec, cove.ScopeRead}, try: func(v *visit) bool { return v.rpc("sandbox.command.run", `,"command":"echo","args":["hello"]`) != "" }},
	},
	"link": {
		"read a file":  {needs: []cove.Scope{cove.ScopeFileRead}, try: func(v *visit) bool { return v.follow("GET", false) }},
		"write a file": {needs: []cove.Scope{cove.ScopeFileWrite}, try: func(v *visit) bool { return v.follow("PUT", true) }},
	},
	"preview": {
		"reach a port": {needs: []cove.Scope{cove.ScopeExec}, try: (*visit).preview},
	},
}

// ability is something that can be done with a sandbox through a front end.
type ability struct {
	needs []cove.Scope
	or    cove.Scope        // that is enough by itself; "" for none
	own   bool              // it is about the key's own tenant and not about the session
	try   func(*visit) bool // reports whether it was done; false means refused
}

// signsIn are the scopes of which a key needs one to sign a browser in.
var signsIn = []cove.Scope{cove.ScopeRead, cove.ScopeRuns, cove.ScopeAdmin}

// allows reports whether a key has the scopes for an ability of a front end.
func (a ability) allows(front string, key cove.Principal) bool {
	if a.or != "" && key.May(a.or) {
		return true
	}
	lacks := func(s cove.Scope) bool { return !key.May(s) }
	return !slices.ContainsFunc(a.needs, lacks) && (front != "console" || slices.ContainsFunc(signsIn, key.May))
}

// openers open a session through each front end that can.
var openers = map[string]func(*visit) cove.ID{
	"REST": func(v *visit) cove.ID { return open(v.t, v.client) },
	"E2B": func(v *visit) cove.ID {
		var made struct{ SandboxID cove.ID }
		v.e2bJSON("POST", "/sandboxes", `{"timeout":600,"network":{"allowPublicTraffic":false}}`, &made)
		return made.SandboxID
	},
	"MCP": func(v *visit) cove.ID {
		var made struct {
			Session cove.ID `json:"session_id"`
		}
		if err := json.Unmarshal([]byte(v.mcp("write_file", map[string]any{"path": "f", "content": "x"})), &made); err != nil {
			v.t.Fatal(err)
		}
		return made.Session
	},
	"microsandbox": func(v *visit) cove.ID {
		if v.rpc("sandbox.start", `,"config":{"image":"microsandbox/python"}`) == "" {
			v.t.Fatal("sandbox.start is refused")
		}
		for s, err := range v.client.Sessions().List(v.t.Context(), cove.SessionFilter{Project: "msb"}) {
			if err != nil {
				v.t.Fatal(err)
			}
			return s.ID
		}
		v.t.Fatal("sandbox.start opened no session")
		return ""
	},
}

// keySets are the sets of scopes that keys of the table have: each scope alone, each with
// sandbox:read, and all but one.
func keySets() [][]cove.Scope {
	var sets [][]cove.Scope
	for _, s := range cove.Scopes() {
		sets = append(sets, []cove.Scope{s})
		if s != cove.ScopeRead && s != cove.ScopeAll {
			rest := slices.DeleteFunc(cove.Scopes(), func(o cove.Scope) bool { return o == s || o == cove.ScopeAll })
			sets = append(sets, []cove.Scope{cove.ScopeRead, s}, rest)
		}
	}
	return append(sets, slices.DeleteFunc(cove.Scopes(), func(o cove.Scope) bool { return o == cove.ScopeRead || o == cove.ScopeAll }))
}

// TestFrontEndsGiveNoMoreThanTheKey opens a session through each front end and reaches it
// through each with keys of all kinds. What a key may do does not depend on the front
// end that opened the session.
func TestFrontEndsGiveNoMoreThanTheKey(t *testing.T) {
	b := frontEndBench(t)
	for _, scopes := range keySets() {
		t.Run(fmt.Sprint(scopes), func(t *testing.T) {
			for opener, id := range b.sessions {
				v := b.visit(t, id, opener, cove.KeyRequest{Tenant: "acme", Scopes: scopes})
				v.each(func(front, name string, a ability) {
					if got, want := a.try(v), a.allows(front, v.key); got != want {
						t.Errorf("%s: %s in a session opened through %s: done %t, want %t", front, name, opener, got, want)
					}
				})
			}
		})
	}
}

// TestFrontEndsForOtherKeys: a key of another tenant reaches nothing through any front
// end, and neither do a revoked key, its tokens, its links and its browser.
func TestFrontEndsForOtherKeys(t *testing.T) {
	b := frontEndBench(t)
	for opener, id := range b.sessions {
		t.Run("opened through "+opener, func(t *testing.T) {
			rival := b.visit(t, id, opener, cove.KeyRequest{Tenant: "rival", Scopes: []cove.Scope{cove.ScopeAll}})
			rival.each(func(front, name string, a ability) {
				if !a.own && a.try(rival) {
					t.Errorf("%s: %s is done for a key of another tenant", front, name)
				}
			})
			old := b.visit(t, id, opener, cove.KeyRequest{Tenant: "acme", Scopes: []cove.Scope{cove.ScopeAll}})
			old.each(func(front, name string, a ability) {
				if !a.try(old) {
					t.Errorf("%s: %s is refused to a key that may do everything", front, name)
				}
			})
			if err := b.admin.Admin().RevokeKey(t.Context(), old.keyID); err != nil {
				t.Fatal(err)
			}
			old.each(func(front, name string, a ability) {
				if a.try(old) {
					t.Errorf("%s: %s is done for a revoked key", front, name)
				}
			})
		})
	}
}

// TestPublicSandbox: what a sandbox with public traffic gives to a caller without a key or a
// token is its ports and the list of its contexts, and nothing that runs or reads.
func TestPublicSandbox(t *testing.T) {
	b := frontEndBench(t)
	v := b.visit(t, "", "", cove.KeyRequest{Tenant: "acme", Scopes: []cove.Scope{cove.ScopeAll}})
	var made struct{ SandboxID cove.ID }
	v.e2bJSON("POST", "/sandboxes", `{"timeout":600}`, &made)
	v.id = made.SandboxID
	if _, err := v.client.Processes(v.id).Start(t.Context(), cove.ExecRequest{Line: "serve 3000 hello"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		return call(t, v.domain, "GET", "https://3000-"+string(v.id)+"."+b.r.E2BDomain+"/", "").status == http.StatusOK
	})
	for _, c := range []struct {
		port, method, path, body string
		status                   int
	}{
		{"49999", "GET", "/contexts", "", http.StatusOK},
		{"49999", "POST", "/execute", `{"code":"1"}`, http.StatusUnauthorized},
		{"49983", "GET", "/files?path=f", "", http.StatusUnauthorized},
		{"49983", "POST", "/files?path=f", "x", http.StatusUnauthorized},
		{"49983", "POST", "/filesystem.Filesystem/ListDir", `{"path":"/"}`, http.StatusUnauthorized},
		{"49983", "POST", "/process.Process/List", `{}`, http.StatusUnauthorized},
	} {
		if got := call(t, http.DefaultClient, c.method, b.r.URL+c.path, c.body, "E2b-Sandbox-Id", string(v.id), "E2b-Sandbox-Port", c.port, "Content-Type", "application/json"); got.status != c.status {
			t.Errorf("%s %s without a token: %d %s", c.method, c.path, got.status, got.body)
		}
	}
}

// bench is a server with a session opened through each front end.
type bench struct {
	r        daemon.Ready
	admin    *client.Client
	owner    *client.Client // of a key that may do everything in the tenant of the sessions
	sessions map[string]cove.ID
}

func frontEndBench(t *testing.T) *bench {
	r, end := serve(t, settings(t, "COVE_PREVIEW_ADDR", "127.0.0.1:0", "COVE_E2B_ADDR", "127.0.0.1:0", "COVE_E2B_DOMAIN", "cove.test"), daemon.Options{DevTLS: true})
	t.Cleanup(end)
	b := &bench{r: r, admin: adminOf(t, r), sessions: map[string]cove.ID{}}
	owner := b.visit(t, "", "", cove.KeyRequest{Tenant: "acme", Scopes: []cove.Scope{cove.ScopeAll}})
	b.owner = owner.client
	for name, open := range openers {
		owner.id = "" // a tool of MCP then opens a session
		id := open(owner)
		b.sessions[name] = id
		if err := owner.client.Files(id).Write(t.Context(), "f", strings.NewReader("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := owner.client.Processes(id).Start(t.Context(), cove.ExecRequest{Line: "serve 3000 hello"}); err != nil {
			t.Fatal(err)
		}
		owner.id = id
		eventually(t, owner.preview)
	}
	return b
}

// visit is a new key and one session.
func (b *bench) visit(t *testing.T, id cove.ID, opener string, req cove.KeyRequest) *visit {
	t.Helper()
	key, secret, err := b.admin.Admin().CreateKey(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	v := &visit{
		t: t, b: b, id: id, opener: opener, keyID: key.ID, secret: secret, key: cove.Principal{Scopes: key.Scopes},
		client: dial(t, b.r.URL, secret), domain: visitor(t, b.r, false), handles: map[string]string{},
	}
	t.Cleanup(v.close)
	return v
}

// each calls do with every ability of every front end that serves the session: clients of
// microsandbox have names for their own sandboxes only.
func (v *visit) each(do func(front, name string, a ability)) {
	for _, front := range slices.Sorted(maps.Keys(frontEnds)) {
		if front == "microsandbox" && v.opener != front {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(frontEnds[front])) {
			do(front, name, frontEnds[front][name])
		}
	}
}

// done tells a request that was answered from one that was refused.
func (v *visit) done(what string, status int, body string) bool {
	switch {
	case status >= 200 && status < 300:
		return true
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusNotFound || status == http.StatusBadGateway:
		return false
	}
	v.t.Errorf("%s: %d %s", what, status, body)
	return false
}

// tenantsPage is read before a server on demand changes the working directory.
var tenantsPage, errTenantsPage = os.ReadFile("../../docs/tenants.md")

// TestFrontEndsAreDocumented: docs/tenants.md has the table.
func TestFrontEndsAreDocumented(t *testing.T) {
	fronts := slices.Sorted(maps.Keys(frontEnds))
	rows := map[string]bool{}
	for _, abilities := range frontEnds {
		for name := range abilities {
			rows[name] = true
		}
	}
	lines := []string{"| | " + strings.Join(fronts, " | ") + " |", strings.Repeat("|---", len(fronts)+1) + "|"}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		cells := []string{"| " + name}
		for _, front := range fronts {
			var scopes []string
			for _, s := range frontEnds[front][name].needs {
				scopes = append(scopes, "`"+string(s)+"`")
			}
			if or := frontEnds[front][name].or; or != "" {
				scopes = append(scopes, "or `"+string(or)+"`")
			}
			cells = append(cells, strings.TrimRight(" "+strings.Join(scopes, " "), " "))
		}
		lines = append(lines, cells[0]+" |"+strings.Join(cells[1:], " |")+" |")
	}
	if errTenantsPage != nil {
		t.Fatal(errTenantsPage)
	}
	if table := strings.Join(lines, "\n") + "\n"; !strings.Contains(string(tenantsPage), table) {
		t.Errorf("the page lacks the table, or has another one:\n%s", table)
	}
}
