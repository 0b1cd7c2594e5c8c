package daemon_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/wire"
)

// tool sends a body to a route that is not about a session.
func (w *wired) tool(path, body string, header ...string) (status int, text string) {
	w.t.Helper()
	method := "POST"
	if body == "" {
		method = "GET"
	}
	return w.ask(method, path, strings.NewReader(body), header...)
}

func TestAnalyze(t *testing.T) {
	w := plug(t)
	for name, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"allowed":           {`{"command":"ls -l | head","policy":"agent-bash"}`, 200, `{"policy":"agent-bash","effect":"allow","programs":[{"name":"ls","kind":"program","effect":"allow","line":1,"column":1},{"name":"head",`},
		"denied":            {`{"command":["sudo","ls"],"policy":"agent-bash"}`, 200, `"effect":"deny","refusal":{"rule":`},
		"no policy":         {`{"command":"ls"}`, 400, "policy: is not given"},
		"an unknown policy": {`{"command":"ls","policy":"none-such"}`, 400, "none-such"},
	} {
		if status, text := w.tool("/api/analyze", c.body); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	byDefault := plug(t, "SANDBOX_COMMAND_POLICY", "agent-bash")
	if status, text := byDefault.tool("/api/analyze", `{"command":"curl x"}`); status != 200 || !strings.Contains(text, `"policy":"agent-bash"`) {
		t.Errorf("the policy of the settings: %d %s", status, text)
	}
}

func TestTemplatesAndCode(t *testing.T) {
	w := plug(t)
	if status, text := w.tool("/api/templates", ""); status != 200 || !strings.Contains(text, `"name":"sandbox","shared":true,"kind":`) || !strings.Contains(text, `"ready":true,"providers":["fake`) {
		t.Errorf("%d %s", status, text)
	}
	before := w.sessions()
	status, text := w.tool("/api/code", `{"language":"calc","code":"1+2","template":"python"}`)
	if status != 200 || !strings.Contains(text, `"session_created":true`) || !strings.Contains(text, `"template":"python"`) || !strings.Contains(text, `"text":"3"`) {
		t.Errorf("%d %s", status, text)
	}
	if n := w.sessions(); n != before+1 {
		t.Errorf("there are %d sessions", n)
	}
	status, text = w.tool("/api/code", `{"language":"calc","code":"1+2","session_id":"`+string(w.id)+`"}`)
	if status != 200 || !strings.Contains(text, `"session_created":false`) || !strings.Contains(text, `"session_id":"`+string(w.id)+`"`) {
		t.Errorf("%d %s", status, text)
	}
	// What cannot be run leaves no session.
	if status, text := w.tool("/api/code", `{"language":"none-such","code":"1"}`); status < 400 {
		t.Errorf("%d %s", status, text)
	}
	if n := w.sessions(); n != before+1 {
		t.Errorf("there are %d sessions after code that nothing can run", n)
	}
}

func (w *wired) sessions() int {
	w.t.Helper()
	_, text := w.tool("/api/sandboxes", "")
	return strings.Count(text, `"sandbox_id"`)
}

func TestVerifyOverHTTP(t *testing.T) {
	w := plug(t)
	status, text := w.tool("/api/verify", `{"provider":"fake"}`)
	if status != 200 || !strings.Contains(text, "event: finding\ndata: {\"attack\":") || !strings.Contains(text, "event: verdict\ndata: {\"attempts\":") {
		t.Errorf("%d %.500s", status, text)
	}
	if status, text := w.tool("/api/verify", `{"provider":"none-such"}`); status != 400 || !strings.Contains(text, "is not part of this build; use") {
		t.Errorf("%d %s", status, text)
	}
}

// TestOneVerifyAtATime: a second one is told to wait, and the first one's caller
// can end it.
func TestOneVerifyAtATime(t *testing.T) {
	verify := daemon.Verifier(settings(t))
	enough := errors.New("enough")
	err := verify(t.Context(), "", func(wire.Finding) error {
		if err := verify(t.Context(), "", nil); !errors.Is(err, cove.Conflict) {
			t.Errorf("a second one: %v", err)
		}
		return enough
	})
	if !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
}
