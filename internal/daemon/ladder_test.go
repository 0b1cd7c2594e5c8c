package daemon_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// started is what loading and starting say about some settings, one after the other.
func started(t *testing.T, pairs ...string) error {
	t.Helper()
	env := map[string]string{"COVE_HOME": t.TempDir() + "/home", "POOL_SIZE": "0", "COVE_ADDR": "127.0.0.1:0"}
	for i := 0; i < len(pairs); i += 2 {
		env[pairs[i]] = pairs[i+1]
	}
	cfg, err := config.Load(config.Sources{
		Env: func(n string) (string, bool) { v, ok := env[n]; return v, ok }, Providers: daemon.ProviderNames(),
	})
	if err != nil {
		return err
	}
	return daemon.Serve(t.Context(), cfg, daemon.Options{Logger: slog.New(slog.DiscardHandler)})
}

// TestStartSentences wants one sentence for each wrong or missing setting: which it
// is, what is wrong, and what to do.
func TestStartSentences(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>a proxy's page</html>"))
	}))
	defer page.Close()
	unkind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"code":401,"message":"no"}`))
	}))
	defer unkind.Close()
	const nobody = "http://127.0.0.1:1"
	for name, tt := range map[string]struct {
		settings []string
		want     []string // in the sentence and its remedy
	}{
		"an unknown provider":     {[]string{"SANDBOX_PROVIDER", "podman"}, []string{"SANDBOX_PROVIDER: ", `"podman" is unknown`, "local"}},
		"by its other name":       {[]string{"SANDBOX_TYPE", "podman"}, []string{"SANDBOX_TYPE: ", `"podman" is unknown`}},
		"an unknown fallback":     {[]string{"SANDBOX_FALLBACK", "docker,cloud"}, []string{"SANDBOX_FALLBACK: ", `unknown provider "cloud"`}},
		"a fallback to itself":    {[]string{"SANDBOX_PROVIDER", "docker", "SANDBOX_FALLBACK", "docker"}, []string{"SANDBOX_FALLBACK: ", "name each provider once"}},
		"docker by ssh":           {[]string{"DOCKER_HOST", "ssh://root@host"}, []string{"DOCKER_HOST: ", "unix"}},
		"docker's certificates":   {[]string{"DOCKER_TLS_VERIFY", "1"}, []string{"DOCKER_TLS_VERIFY: ", "DOCKER_CERT_PATH is not set; set it"}},
		"e2b without a key":       {[]string{"SANDBOX_PROVIDER", "e2b"}, []string{"SANDBOX_PROVIDER: provider e2b is not ready: E2B_API_KEY is not set", "set E2B_API_KEY"}},
		"e2b with a wrong key":    {[]string{"SANDBOX_TYPE", "e2b", "E2B_API_KEY", "k", "E2B_API_URL", unkind.URL}, []string{"SANDBOX_TYPE: provider e2b is not ready: ", "does not accept the key in E2B_API_KEY"}},
		"e2b that is a page":      {[]string{"SANDBOX_PROVIDER", "e2b", "E2B_API_KEY", "k", "E2B_API_URL", page.URL}, []string{"answers, and not as E2B does", "E2B_API_URL"}},
		"e2b that is not there":   {[]string{"SANDBOX_PROVIDER", "e2b", "E2B_API_KEY", "k", "E2B_API_URL", nobody}, []string{"does not answer", "E2B_API_URL"}},
		"e2b's domain":            {[]string{"E2B_DOMAIN", "https://e2b.app"}, []string{"E2B_DOMAIN: ", "is not a domain"}},
		"neither of two":          {[]string{"SANDBOX_PROVIDER", "e2b", "SANDBOX_FALLBACK", "docker", "DOCKER_HOST", "unix:///nowhere/docker.sock"}, []string{"provider e2b is not ready: E2B_API_KEY is not set; nor is docker: Docker daemon not available", "set E2B_API_KEY"}},
		"docker that is gone":     {[]string{"SANDBOX_PROVIDER", "docker", "DOCKER_HOST", "unix:///nowhere/docker.sock"}, []string{"SANDBOX_PROVIDER: provider docker is not ready: "}},
		"microsandbox that's off": {[]string{"SANDBOX_PROVIDER", "microsandbox", "MSB_TRANSPORT", "rpc", "MSB_SERVER_URL", nobody}, []string{"SANDBOX_PROVIDER: provider microsandbox is not ready: "}},
	} {
		t.Run(name, func(t *testing.T) {
			err := started(t, tt.settings...)
			if code := cove.CodeOf(err); code != cove.Invalid && code != cove.Unavailable {
				t.Fatalf("the error is %v", err)
			}
			said := cove.MessageOf(err) + " " + cove.RemedyOf(err)
			for _, want := range tt.want {
				if !strings.Contains(said, want) {
					t.Errorf("it says %q and not %q", said, want)
				}
			}
			if strings.Contains(said, "\n") {
				t.Errorf("it is more than a sentence: %q", said)
			}
		})
	}
}

// A written order is enough to start where the first provider is not ready.
func TestStartWithAnOrder(t *testing.T) {
	cfg := settings(t, "SANDBOX_PROVIDER", "e2b", "SANDBOX_FALLBACK", "fake")
	log := &safeText{}
	r, _ := serve(t, cfg, daemon.Options{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	log.mu.Lock()
	first := log.text.String()
	log.mu.Unlock()
	if !strings.Contains(first, `msg="another provider serves" provider=fake instead_of=e2b reason="SANDBOX_PROVIDER: provider e2b is not ready: E2B_API_KEY is not set"`) {
		t.Errorf("the start says %q", first)
	}
	s, err := dial(t, r.URL, keyOf(t, r)).Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil || s.Provider != "fake" || s.Instead != "e2b" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestDoctorLadder(t *testing.T) {
	cfg := settings(t, "SANDBOX_PROVIDER", "e2b", "SANDBOX_FALLBACK", "local,fake", "E2B_API_KEY", "k", "E2B_API_URL", "http://127.0.0.1:1")
	rows, err := daemon.Doctor(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	at := map[string]cove.ProviderReport{}
	last := -1
	for _, r := range rows {
		names = append(names, r.Name)
		at[r.Name] = r
		i := slices.Index(cove.Boundaries(), r.Capabilities.Isolation.Boundary)
		if i < last || i < 0 {
			t.Errorf("%s is behind %q, which is weaker than before it, or none", r.Name, r.Capabilities.Isolation.Boundary)
		}
		last = i
		for _, limit := range cove.LimitNames() {
			if e := r.Capabilities.Isolation.Of(limit); e != cove.Hard && e != cove.Soft && e != cove.Absent {
				t.Errorf("%s: the limit on %s is %q", r.Name, limit, e)
			}
		}
	}
	if want := daemon.ProviderNames(); !slices.Equal(slices.Sorted(slices.Values(names)), want) {
		t.Errorf("the rows are %v, want %v", names, want)
	}
	if !at["e2b"].Default || at["e2b"].Capabilities.Ready || at["e2b"].Capabilities.Remedy == "" {
		t.Errorf("e2b: %+v", at["e2b"])
	}
	if at["local"].Fallback != 1 || at["fake"].Fallback != 2 || at["docker"].Fallback != 0 || at["fake"].Default {
		t.Errorf("the order is %+v", at)
	}
	if slices.Index(names, "fake") > slices.Index(names, "local") || slices.Index(names, "local") > slices.Index(names, "e2b") {
		t.Errorf("the ladder is %v", names)
	}
}
