package daemon_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// heard is a log, or what a collector got, that many write.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// TestServerTellsOfItself runs a server with everything that watches it, and
// looks at what came out: metrics, a trace and events, and no content.
func TestServerTellsOfItself(t *testing.T) {
	var log, got heard
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(&got, r.Body) }))
	defer collector.Close()
	cfg := settings(t, "OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	r, end := serve(t, cfg, daemon.Options{Version: "v9", Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	key, err := os.ReadFile(r.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	admin := dial(t, r.URL, strings.TrimSpace(string(key)))
	s := use(t, admin)
	say := func(key, method, path, body string, header ...string) (int, string) {
		return plain(t, r.URL+path, key, method, body, header...)
	}
	const trace = "0af7651916cd43dd8448eb211c80319c"
	say(strings.TrimSpace(string(key)), http.MethodPost, "/api/sandboxes/"+string(s.ID)+"/execute", `{"command":"echo hush"}`,
		"Traceparent", "00-"+trace+"-b7ad6b7169203331-01", "Cove-Retry", "session_expired")
	say(strings.TrimSpace(string(key)), http.MethodPost, "/api/sandboxes", `{"hush":1}`)

	_, reader, err := admin.Admin().CreateKey(t.Context(), cove.KeyRequest{Name: "prometheus", Scopes: []cove.Scope{cove.ScopeMetrics}})
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := say(reader, http.MethodGet, "/api/stats", ""); status != http.StatusForbidden {
		t.Errorf("a key for metrics sees more: %d", status)
	}
	if status, _ := say("", http.MethodGet, "/metrics", ""); status != http.StatusUnauthorized {
		t.Errorf("without a key: %d", status)
	}
	status, text := say(reader, http.MethodGet, "/metrics", "")
	for _, want := range []string{
		`cove_build_info{goversion="`, "cove_healthy 1", `cove_sessions{state="running"} 1`,
		`cove_sessions_created_total{provider="fake"} 1`, `cove_sessions_reused_total{provider="fake"} 1`,
		`cove_commands_total{outcome="ok",provider="fake",verb="process.exec"} 1`,
		`cove_commands_total{outcome="failed",provider="fake",verb="process.exec"} 1`,
		`cove_files_uploaded_bytes_total{provider="fake"} 4`, `cove_files_downloaded_bytes_total{provider="fake"} 4`,
		`cove_retries_total{outcome="success",provider="fake",verb="process.exec"} 1`,
		`cove_validation_failures_total{provider="none",verb="request"} 1`,
		`cove_http_requests_total{method="GET",route="/metrics",status="401"} 1`,
	} {
		if status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%d: the metrics have no %s", status, want)
		}
	}
	end()
	for _, want := range []string{trace, `"name":"process.exec"`, `"name":"journal intent"`, `"stringValue":"` + string(s.ID) + `"`} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("the traces have no %s", want)
		}
	}
	for _, event := range []string{"session_created", "session_reused", "command_executed", "command_failed", "file_uploaded", "file_downloaded", "validation_failed"} {
		if !strings.Contains(log.String(), `"msg":"`+event+`","tenant":"default"`) {
			t.Errorf("the log has no %s", event)
		}
	}
	for where, said := range map[string]string{"log": log.String(), "traces": got.String(), "metrics": text} {
		if strings.Contains(said, "hush") || strings.Contains(said, strings.TrimSpace(string(key))) {
			t.Errorf("there is content in the %s", where)
		}
	}
}

// use does what leaves traces.
func use(t *testing.T, p cove.Platform) *cove.Session {
	t.Helper()
	req := cove.OpenRequest{Spec: cove.Spec{User: "ann", Thread: "t", Env: map[string]string{"A": "hush"}}}
	s, err := p.Sessions().Open(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Sessions().Open(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "echo hush; exit 3"}); err != nil {
		t.Fatal(err)
	}
	if err := p.Files(s.ID).Write(t.Context(), "hush", strings.NewReader("hush"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := p.Files(s.ID).Read(t.Context(), "hush", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

// plain makes one request.
func plain(t *testing.T, url, key, method, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestACollectorThatIsNone(t *testing.T) {
	cfg := settings(t)
	cfg.Telemetry.Endpoint = "nowhere"
	err := daemon.Serve(t.Context(), cfg, daemon.Options{Logger: slog.New(slog.DiscardHandler)})
	if cove.CodeOf(err) != cove.Invalid {
		t.Errorf("the error is %v, want Invalid", err)
	}
}
