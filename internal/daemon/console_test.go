package daemon_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/daemon/daemontest"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// fetched sends a request with a key and returns the answer.
func fetched(t *testing.T, url, key, accept string) (status int, header http.Header, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(body)
}

func TestConsoleThatCannotBeUsed(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.tar")
	if err := os.WriteFile(bad, []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{bad, filepath.Join(t.TempDir(), "none.tar")} {
		err := daemon.Serve(t.Context(), settings(t, "SANDBOX_PROVIDER", "fake", "COVE_ADDR", "127.0.0.1:0", "COVE_CONSOLE", path), daemon.Options{})
		if cove.CodeOf(err) != cove.Invalid || !strings.Contains(err.Error(), "COVE_CONSOLE") || !strings.Contains(cove.RemedyOf(err), "scripts/web.sh") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestWithoutConsole: a plain build says to a browser what it lacks.
func TestWithoutConsole(t *testing.T) {
	at, _ := daemontest.Serve(t, map[string]string{"SANDBOX_PROVIDER": "fake"})
	if status, _, body := fetched(t, at.URL, "", "text/html"); status != http.StatusOK || !strings.Contains(body, "install npm and run make build") {
		t.Errorf("%d %s", status, body)
	}
}

func TestConsole(t *testing.T) {
	pages := filepath.Join(providertest.Needs(t, "console", "COVE_TEST_CONSOLE"), "console.tar")
	at, _ := daemontest.Serve(t, map[string]string{"SANDBOX_PROVIDER": "fake", "COVE_CONSOLE": pages})
	status, header, body := fetched(t, at.URL, "", "text/html,*/*")
	if status != http.StatusOK || !strings.Contains(body, `<div id="console">`) || !strings.Contains(header.Get("Content-Security-Policy"), "script-src 'self'") {
		t.Fatalf("%d %s", status, body)
	}
	_, script, _ := strings.Cut(body, `src="`)
	script, _, _ = strings.Cut(script, `"`)
	if status, header, _ := fetched(t, at.URL+"/"+script, "", "*/*"); status != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/javascript") {
		t.Errorf("%s: %d", script, status)
	}
}

func TestJournalIsChecked(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	at, key := daemontest.Serve(t, map[string]string{"SANDBOX_PROVIDER": "fake", "COVE_HOME": home})
	if status, _, body := fetched(t, at.URL+"/api/events/verify", key, "*/*"); status != http.StatusOK || !strings.Contains(body, `"problems":[]`) {
		t.Errorf("%d %s", status, body)
	}
	if status, _, _ := fetched(t, at.URL+"/api/events/verify", "", "*/*"); status != http.StatusUnauthorized {
		t.Errorf("without a key: %d", status)
	}
}
