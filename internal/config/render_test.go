package config_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/config"
)

var update = flag.Bool("update", false, "rewrite the generated files")

func withSecrets(t *testing.T) config.Config {
	t.Helper()
	src := sources(t, map[string]string{
		"COVE_API_KEY": "topsecret", "REDIS_URL": "redis://:topsecret@r:1", "MSB_API_KEY": "topsecret", "SANDBOX_PROVIDER": "fake",
		"COVE_ARCHIVE_ACCESS_KEY": "topsecret", "COVE_ARCHIVE_SECRET_KEY": "topsecret",
		"MSB_SHARED_VOLUME_PATH": "/a:/data/a,/b:/data/b:ro", "DOCKER_MEMORY_LIMIT": "5000001", "SANDBOX_MAX_OUTPUT_KB": "1.5",
		"SANDBOX_FALLBACK": "docker,local", "MSB_SESSION_TIMEOUT": "2h",
		"OTEL_EXPORTER_OTLP_ENDPOINT": "https://topsecret@h/p", "COVE_ARCHIVE_URL": "s3://topsecret:topsecret@b/p?token=topsecret&topsecret#topsecret",
	})
	writeFile(t, src, "log_level: debug\nflavors:\n  tiny: {cpus: 1, memory: 5m}\npolicies:\n  p: {allow: [cat], deny: [rm], ask: [cp], helpers: [/usr/lib/git-core, /usr/lib/gcc], network: none, timeout: 5s, max_output: 1500b}\n"+
		"secrets:\n  key: {hosts: ['*.test', 'api.test:8443'], header: X-Key, value: topsecret, plain: true}\n")
	return load(t, src)
}

func TestNoWayOfPrintingShowsASecret(t *testing.T) {
	c := withSecrets(t)
	var log, asJSON, asYAML bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("start", slog.Any("config", c), slog.Any("key", c.Client.APIKey))
	if err := c.PrintJSON(&asJSON); err != nil {
		t.Fatal(err)
	}
	if err := c.PrintYAML(&asYAML); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(c.Client)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"%v": fmt.Sprintf("%v", c), "%+v": fmt.Sprintf("%+v", c), "%#v": fmt.Sprintf("%#v", c), "%s": c.String(),
		"pointer": fmt.Sprintf("%+v", &c), "part %v": fmt.Sprintf("%v", c.Client), "part %#v": fmt.Sprintf("%#v", c.Client),
		"json": asJSON.String(), "yaml": asYAML.String(), "slog": log.String(), "marshal": string(encoded),
	} {
		if strings.Contains(text, "topsecret") {
			t.Errorf("%s shows a secret:\n%s", name, text)
		}
		if !strings.Contains(text, "********") {
			t.Errorf("%s has no mask:\n%s", name, text)
		}
	}
	if got := fmt.Sprint(config.Secret("")); got != "" {
		t.Errorf("an empty secret prints %q", got)
	}
}

func TestPrintedFileLoadsAgain(t *testing.T) {
	c := withSecrets(t)
	text := strings.ReplaceAll(c.String(), "********", "x")
	src := sources(t, nil)
	writeFile(t, src, text)
	again, err := config.Load(src)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	want, got := c.Values(), again.Values()
	for i := range want {
		if want[i].Value != got[i].Value && want[i].Name != "COVE_HOME" && want[i].Name != "COVE_CONFIG" {
			t.Errorf("%s: was %q, is %q", want[i].Name, want[i].Value, got[i].Value)
		}
	}
	if diff := cmp.Diff(c.Flavors, again.Flavors); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(c.Policies, again.Policies); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(c.Secrets["key"].Hosts, again.Secrets["key"].Hosts); diff != "" || again.Secrets["key"].Header != "X-Key" || !again.Secrets["key"].Plain {
		t.Error(diff, again.Secrets)
	}
	if diff := cmp.Diff(c.Volumes, again.Volumes); diff != "" {
		t.Error(diff)
	}
}

func TestValuesSayWhereTheyCameFrom(t *testing.T) {
	c := withSecrets(t)
	found := map[string]config.Value{}
	for _, v := range c.Values() {
		found[v.Name] = v
	}
	for name, want := range map[string]config.Value{
		"SANDBOX_PROVIDER": {Name: "SANDBOX_PROVIDER", Key: "provider", Value: "fake", Origin: "env", From: "SANDBOX_PROVIDER"},
		"COVE_LOG_LEVEL":   {Name: "COVE_LOG_LEVEL", Key: "log_level", Value: "debug", Origin: "file", From: c.File + ":1"},
		"COVE_ADDR":        {Name: "COVE_ADDR", Key: "server.addr", Value: "127.0.0.1:8000", Origin: "default"},
		"flavors":          {Name: "flavors", Key: "flavors", Value: "large,medium,small,tiny", Origin: "file", From: c.File + ":2"},
		"MSB_MAX_SESSIONS": {Name: "MSB_MAX_SESSIONS", Key: "session.max", Origin: "default"},
		"COVE_API_KEY":     {Name: "COVE_API_KEY", Key: "client.api_key", Value: "********", Origin: "env", From: "COVE_API_KEY"},
		"REDIS_URL":        {Name: "REDIS_URL", Key: "redis.url", Value: "redis://:xxxxx@r:1", Origin: "env", From: "REDIS_URL"},
	} {
		if diff := cmp.Diff(want, found[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestGeneratedFilesAreCurrent(t *testing.T) {
	for path, want := range map[string]string{
		"../../.env.example":          config.EnvExample(),
		"../../docs/configuration.md": config.Docs(),
	} {
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is old; run go test ./internal/config -update\n%s", path, diff)
		}
	}
}

// Every name that users know must be there; a setting cannot vanish unseen.
func TestEveryPromisedNameExists(t *testing.T) {
	promised := strings.Fields(`SANDBOX_PROVIDER SANDBOX_TYPE SANDBOX_FALLBACK SANDBOX_MODE SANDBOX_URL SANDBOX_TIMEOUT_SEC
		SANDBOX_MAX_OUTPUT_KB SANDBOX_BLOCK_DANGEROUS_IMPORTS SANDBOX_STORE_CODE MSB_SERVER_URL MSB_API_KEY MSB_NAMESPACE MSB_CPUS
		MSB_MEMORY_MB SANDBOX_COMMAND_POLICY MSB_SESSION_TIMEOUT MSB_MAX_SESSIONS MSB_DEFAULT_FLAVOR MSB_SHARED_VOLUME_PATH
		MSB_MAX_TOTAL_MEMORY_MB MSB_ENABLE_LRU_EVICTION MSB_CLEANUP_INTERVAL MSB_ORPHAN_CLEANUP_INTERVAL MSB_EXECUTION_TIMEOUT
		MSB_SANDBOX_START_TIMEOUT DOCKER_HOST DOCKER_TLS_VERIFY DOCKER_CERT_PATH DOCKER_IMAGE DOCKER_NETWORK_ENABLED DOCKER_CPU_LIMIT
		DOCKER_MEMORY_LIMIT E2B_API_KEY E2B_API_URL E2B_DOMAIN MAX_POOL_SIZE POOL_SIZE MAX_FILE_SIZE_MB MAX_TOTAL_FILES
		MAX_WORKSPACE_SIZE_MB REDIS_URL REDIS_HOST REDIS_PORT COVE_VOLUMES COVE_DATASETS COVE_MODEL_URL COVE_MODEL_KEY COVE_MODEL
		MSB_TRANSPORT OTEL_EXPORTER_OTLP_ENDPOINT COVE_ARCHIVE_URL COVE_ARCHIVE_ACCESS_KEY COVE_ARCHIVE_SECRET_KEY COVE_PREVIEW_DOMAIN COVE_PREVIEW_ADDR COVE_ADDR COVE_HOME
		COVE_CONFIG COVE_URL COVE_API_KEY COVE_LOG_LEVEL COVE_NODE_ID`)
	seen := map[string]bool{}
	for s := range config.Settings() {
		for _, name := range []string{s.Env, s.Alias, s.Key, "--" + s.Flag} {
			if seen[name] && name != "" && name != "--" {
				t.Errorf("%s stands for two settings", name)
			}
			seen[name] = true
		}
		if s.Doc == "" || s.Default == "" && s.Shown == "" {
			t.Errorf("%s%s lacks its meaning or its default", s.Env, s.Key)
		}
	}
	for _, name := range promised {
		if !seen[name] {
			t.Errorf("%s is not a setting", name)
		}
	}
}

// A number without bounds would take what nobody meant.
func TestEveryNumberHasBounds(t *testing.T) {
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for f := range typ.Fields() {
			if !f.IsExported() {
				continue // no setting
			}
			switch f.Type.Kind() { //nolint:exhaustive // the others are no numbers
			case reflect.Struct:
				walk(f.Type)
			case reflect.Int, reflect.Int64, reflect.Float64:
				if f.Tag.Get("min") == "" {
					t.Errorf("%s has no min", f.Name)
				}
			}
		}
	}
	walk(reflect.TypeFor[config.Config]())
}
