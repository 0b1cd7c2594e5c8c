package daemon_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

func keyOf(t *testing.T, r daemon.Ready) string {
	t.Helper()
	key, err := os.ReadFile(r.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(key))
}

// TestWhoServesIsAlwaysSaid goes through what callers do to a sandbox, and wants the
// provider in each answer, in the log lines and in the journal.
func TestWhoServesIsAlwaysSaid(t *testing.T) {
	var log heard
	r, end := serve(t, settings(t), daemon.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	key := keyOf(t, r)
	p := dial(t, r.URL, key)
	s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "", "", 200},
		{"POST", "/renew", "{}", 200},
		{"GET", "/stats", "", 200},
		{"POST", "/execute", `{"command":"echo hi"}`, 200},
		{"POST", "/execute", `{"command":"exit 3"}`, 200},
		{"POST", "/execute", `{"command":""}`, 400},
		{"POST", "/code", `{"language":"calc","code":"1+1"}`, 200},
		{"POST", "/code", `{"language":"cobol","code":"1"}`, 400},
		{"GET", "/contexts", "", 200},
		{"POST", "/contexts", `{"language":"calc"}`, 201},
		{"GET", "/processes", "", 200},
		{"POST", "/processes", `{"command":"sleep 100"}`, 201},
		{"GET", "/processes/77", "", 404},
		{"PUT", "/files?path=a.txt", "text", 200},
		{"GET", "/files?path=a.txt", "", 200},
		{"GET", "/files?path=missing", "", 404},
		{"GET", "/files/list?path=.", "", 200},
		{"GET", "/files/stat?path=a.txt", "", 200},
		{"POST", "/files/mkdir", `{"path":"d"}`, 204},
		{"GET", "/archive?path=.", "", 200},
		{"POST", "/pause", "", 200},
		{"POST", "/execute", `{"command":"true"}`, 409},
		{"POST", "/resume", "", 200},
		{"POST", "/stop", "", 200},
		{"POST", "/execute", `{"command":"true"}`, 409},
		{"DELETE", "", "", 204},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, r.URL+"/api/sandboxes/"+string(s.ID)+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		req.Header.Set("Authorization", "Bearer "+key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode/100 != tt.status/100 || res.Header.Get("Cove-Provider") != "fake" {
			t.Errorf("%s %s %s: %d by %q, want %d by fake\n%.300s", tt.method, tt.path, tt.body, res.StatusCode, res.Header.Get("Cove-Provider"), tt.status, body)
		}
	}
	journaled(t, p, s.ID)
	end()
	lines := 0
	for line := range strings.Lines(log.String()) {
		if !strings.Contains(line, string(s.ID)) {
			continue
		}
		lines++
		var l struct{ Msg, Provider string }
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Provider != "fake" {
			t.Errorf("a line about the session without its provider: %s", line)
		}
	}
	if lines == 0 {
		t.Error("the log says nothing about the session")
	}
}

// journaled wants the provider in all that the journal says of a session, from
// the time on when it has one.
func journaled(t *testing.T, p cove.Platform, id cove.ID) {
	t.Helper()
	lines := 0
	for ev, err := range p.Admin().Events(t.Context(), cove.EventFilter{Session: id}) {
		if err != nil {
			t.Fatal(err)
		}
		lines++
		if ev.Provider != "fake" {
			t.Errorf("the journal does not say who served: %+v", ev)
		}
	}
	if lines == 0 {
		t.Error("the journal says nothing about the session")
	}
}
