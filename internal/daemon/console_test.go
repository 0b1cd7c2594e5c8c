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
func fetched(t *testing.T, url, key, accept string) (*http.Response, string) {
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
	defer answer.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
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
	if answer, body := fetched(t, at.URL, "", "text/html"); answer.StatusCode != http.StatusOK || !strings.Contains(body, "install npm and run make build") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}

func TestConsole(t *testing.T) {
	pages := filepath.Join(providertest.Needs(t, "console", "COVE_TEST_CONSOLE"), "console.tar")
	at, _ := daemontest.Serve(t, map[string]string{"SANDBOX_PROVIDER": "fake", "COVE_CONSOLE": pages})
	answer, body := fetched(t, at.URL, "", "text/html,*/*")
	if answer.StatusCode != http.StatusOK || !strings.Contains(body, `<div id="console">`) || !strings.Contains(answer.Header.Get("Content-Security-Policy"), "script-src 'self'") {
		t.Fatalf("%d %s", answer.StatusCode, body)
	}
	_, script, _ := strings.Cut(body, `src="`)
	script, _, _ = strings.Cut(script, `"`)
	if answer, _ := fetched(t, at.URL+"/"+script, "", "*/*"); answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/javascript") {
		t.Errorf("%s: %d", script, answer.StatusCode)
	}
}

func TestJournalIsChecked(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	at, key := daemontest.Serve(t, map[string]string{"SANDBOX_PROVIDER": "fake", "COVE_HOME": home})
	if answer, body := fetched(t, at.URL+"/api/events/verify", key, "*/*"); answer.StatusCode != http.StatusOK || !strings.Contains(body, `"problems":[]`) {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	if answer, _ := fetched(t, at.URL+"/api/events/verify", "", "*/*"); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a key: %d", answer.StatusCode)
	}
}
