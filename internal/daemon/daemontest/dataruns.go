package daemontest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/chat/modeltest"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/platformtest/dataruns"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// Data is a platform for the suite of data runs.
type Data struct {
	Provider string
	Settings map[string]string // beside those that every test has
	Parts    daemon.Parts
	Served   bool // over HTTP, as cove serve does; otherwise in this process
	// Left says what the platform left behind when it was closed; nil: nobody looks.
	Left func() []string
}

// NeedDuckDB skips the test where there is no executable of DuckDB, and fails where
// COVE_REQUIRE names duckdb.
func NeedDuckDB(t *testing.T) {
	t.Helper()
	providertest.Needs(t, "duckdb", "COVE_TEST_DUCKDB")
}

// Agent returns an agent that needs no library: the one that the tests of the whole
// module share, or it skips the test.
func Agent(t *testing.T) string {
	t.Helper()
	path := os.Getenv("COVE_TEST_AGENT")
	if path == "" {
		t.Skip("COVE_TEST_AGENT names no agent; run make test, which builds one")
	}
	return path
}

// Open implements [dataruns.Open].
func (d Data) Open(t *testing.T, s dataruns.Setup) dataruns.Harness {
	t.Helper()
	h := &dataHarness{t: t, d: d, log: &text{}}
	env := map[string]string{
		"COVE_HOME": filepath.Join(t.TempDir(), "home"), "COVE_ADDR": "127.0.0.1:0", "POOL_SIZE": "0",
		"SANDBOX_PROVIDER": d.Provider, "COVE_DATASETS": s.Datasets, "COVE_DUCKDB": os.Getenv("COVE_TEST_DUCKDB"),
	}
	maps.Copy(env, d.Settings)
	if s.Model != nil {
		h.model = modeltest.New(modeltest.Config{Key: "model-key", Steps: script(s.Model.Steps)})
		env["COVE_MODEL_URL"], env["COVE_MODEL_KEY"], env["COVE_MODEL"] = h.model.URL(), "model-key", "scripted"
	}
	cfg, err := config.Load(config.Sources{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }, Providers: daemon.ProviderNames()})
	if err != nil {
		t.Fatal(err)
	}
	parts := d.Parts
	if s.Fault != dataruns.FaultNone {
		parts.Wrap = func(p cove.Provider) cove.Provider { return faulty{p, s.Fault} }
	}
	if d.Served {
		h.serve(cfg, parts)
	} else {
		h.embed(cfg, parts)
	}
	return h
}

type dataHarness struct {
	t     *testing.T
	d     Data
	log   *text
	model *modeltest.Server
	end   func() error
	as    func(cove.Principal) cove.Platform
	tell  func() string // the metrics

	keys map[string]cove.Platform // of a server, by the principal
}

func (h *dataHarness) As(p cove.Principal) cove.Platform { return h.as(p) }

func (h *dataHarness) Provider() string { return h.d.Provider }

func (h *dataHarness) Told() (metrics, log string) {
	if h.tell == nil {
		return "", ""
	}
	return h.tell(), h.log.String()
}

func (h *dataHarness) Close() {
	h.t.Helper()
	if err := h.end(); err != nil {
		h.t.Errorf("the end of the platform: %v", err)
	}
	if h.model != nil {
		if err := h.model.Err(); err != nil {
			h.t.Errorf("the model: %v", err)
		}
		h.model.Close()
	}
	if h.d.Left != nil {
		if left := h.d.Left(); len(left) > 0 {
			h.t.Errorf("this is left: %q", left)
		}
	}
	if h.t.Failed() {
		h.t.Logf("the log:\n%.20000s", h.log.String())
	}
}

func (h *dataHarness) embed(cfg config.Config, parts daemon.Parts) {
	h.t.Helper()
	e, err := daemon.EmbedWith(h.t.Context(), cfg, false, h.logger(), parts)
	h.started(err)
	h.as = e.As
	h.end = func() error { return e.Close(context.WithoutCancel(h.t.Context())) }
}

// started ends the test where the platform did not start, and skips it where that is
// for want of a provider that need not be there.
func (h *dataHarness) started(err error) {
	h.t.Helper()
	if strings.Contains(cove.MessageOf(err), "provider "+h.d.Provider+" is not ready") {
		providertest.Require(h.t, h.d.Provider, cove.Capabilities{Why: cove.MessageOf(err), Remedy: cove.RemedyOf(err)})
	}
	if err != nil {
		h.t.Fatalf("%v (%s)", err, cove.RemedyOf(err))
	}
}

func (h *dataHarness) serve(cfg config.Config, parts daemon.Parts) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	ready, ended := make(chan daemon.Ready, 1), make(chan error, 1)
	go func() {
		ended <- daemon.Serve(ctx, cfg, daemon.Options{Logger: h.logger(), Parts: parts, Ready: func(r daemon.Ready) { ready <- r }})
	}()
	var at daemon.Ready
	select {
	case at = <-ready:
	case err := <-ended:
		cancel()
		h.started(err)
	}
	key, err := os.ReadFile(at.KeyFile)
	if err != nil {
		h.t.Error(err) // and nothing works from here on
	}
	h.keys = map[string]cove.Platform{}
	admin := h.dial(at.URL, strings.TrimSpace(string(key)))
	h.as = func(p cove.Principal) cove.Platform { return h.caller(at.URL, admin, p) }
	h.tell = func() string { return h.metrics(at.URL, strings.TrimSpace(string(key))) }
	h.end = func() error {
		cancel()
		return <-ended
	}
}

// caller is a client with a key for a principal, the same one whenever it is asked.
func (h *dataHarness) caller(url string, admin cove.Platform, p cove.Principal) cove.Platform {
	h.t.Helper()
	name := fmt.Sprintf("%+v", p)
	if h.keys[name] == nil {
		_, secret, err := admin.Admin().CreateKey(context.WithoutCancel(h.t.Context()), cove.KeyRequest{
			Name: strings.ReplaceAll(p.Name, "/", "-"), Tenant: p.Tenant, Scopes: p.Scopes, Limits: p.Limits,
		})
		if err != nil {
			h.t.Errorf("a key for %s: %v", p.Name, err)
		}
		h.keys[name] = h.dial(url, secret)
	}
	return h.keys[name]
}

func (h *dataHarness) dial(url, key string) cove.Platform {
	h.t.Helper()
	c, err := client.New(url, key)
	if err != nil {
		h.t.Error(err)
	}
	h.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (h *dataHarness) metrics(url, key string) string {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, url+"/metrics", http.NoBody)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // it was read
	all, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		h.t.Fatalf("the metrics: %d, %v", res.StatusCode, err)
	}
	return string(all)
}

func (h *dataHarness) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(h.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// script is what a model does, as the model's server knows it.
func script(steps []dataruns.Step) []modeltest.Step {
	var out []modeltest.Step
	for _, s := range steps {
		if s.Say != nil {
			out = append(out, modeltest.SayOf(func(q modeltest.Question) string { return s.Say(q.Last()) }))
			continue
		}
		var calls []modeltest.Call
		for _, c := range s.Calls {
			calls = append(calls, modeltest.Call{Name: c.Tool, Arguments: c.Arguments})
		}
		out = append(out, modeltest.Use(calls...))
	}
	return out
}

// text is a log that many write.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}
