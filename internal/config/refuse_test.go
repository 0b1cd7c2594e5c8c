package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
)

// checkRefused demands one sentence that is exactly want, with its field.
func checkRefused(t *testing.T, err error, want string) {
	t.Helper()
	e, ok := errors.AsType[*cove.Error](err)
	if !ok || e.Code != cove.Invalid {
		t.Fatalf("got %v, want Invalid", err)
	}
	if e.Message != want {
		t.Errorf("\ngot  %s\nwant %s", e.Message, want)
	}
	if field, _, _ := strings.Cut(want, ": "); e.Details["field"] != field {
		t.Errorf("field is %q, want %q", e.Details["field"], field)
	}
	if strings.Contains(e.Message, "\n") {
		t.Errorf("more than one line: %q", e.Message)
	}
}

func TestBadVariables(t *testing.T) {
	for _, tc := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"MSB_CPUS": "abc"}, `MSB_CPUS: "abc" is not a number; use 0.01 to 1024`},
		{map[string]string{"MSB_CPUS": "NaN"}, `MSB_CPUS: "NaN" is not a number; use 0.01 to 1024`},
		{map[string]string{"MSB_MAX_SESSIONS": "1.5"}, `MSB_MAX_SESSIONS: "1.5" is not a whole number; use 1 to 1000000`},
		{map[string]string{"MSB_MAX_SESSIONS": "0"}, `MSB_MAX_SESSIONS: 0 is out of range; use 1 to 1000000`},
		{map[string]string{"SANDBOX_TIMEOUT_SEC": "0"}, `SANDBOX_TIMEOUT_SEC: 0 is out of range; use 0.001 to 86400`},
		{map[string]string{"MSB_EXECUTION_TIMEOUT": "-1"}, `MSB_EXECUTION_TIMEOUT: -1 is out of range; use 0.001 to 86400`},
		{map[string]string{"MSB_SESSION_TIMEOUT": "soon"}, `MSB_SESSION_TIMEOUT: "soon" is not a time; use a number of seconds, 1 to 31622400, or a form such as 90s or 30m`},
		{map[string]string{"COVE_DAEMON_IDLE": "0"}, `COVE_DAEMON_IDLE: 0 is out of range; use 1 or more`},
		{map[string]string{"COVE_DAEMON_IDLE": "1e300"}, `COVE_DAEMON_IDLE: 1e300 is out of range; use 1 or more`},
		{map[string]string{"SANDBOX_MAX_OUTPUT_KB": "lots"}, `SANDBOX_MAX_OUTPUT_KB: "lots" is not a size; use 1 to 1048576 KB, or a size such as 512m or 1g`},
		{map[string]string{"MSB_MEMORY_MB": "1k"}, `MSB_MEMORY_MB: 1k is out of range; use 4 to 67108864 MB`},
		{map[string]string{"DOCKER_MEMORY_LIMIT": "-5"}, `DOCKER_MEMORY_LIMIT: -5 is out of range; use 4194304 to 70368744177664 bytes`},
		{map[string]string{"DOCKER_NETWORK_ENABLED": "maybe"}, `DOCKER_NETWORK_ENABLED: "maybe" is neither yes nor no; use true or false`},
		{map[string]string{"SANDBOX_STORE_CODE": "sometimes"}, `SANDBOX_STORE_CODE: "sometimes" is unknown; use always, on_error or never`},
		{map[string]string{"COVE_LOG_LEVEL": "loud"}, `COVE_LOG_LEVEL: "loud" is unknown; use debug, info, warn or error`},
		{map[string]string{"SANDBOX_URL": "ftp://x"}, `SANDBOX_URL: "ftp://x" is not a URL that can be used here; start it with http://, https:// or unix://`},
		{map[string]string{"SANDBOX_URL": "http://"}, `SANDBOX_URL: "http:" names no host; write one after http://`},
		{map[string]string{"SANDBOX_URL": "http:///path"}, `SANDBOX_URL: "http:///path" names no host; write one such as http://localhost:8000`},
		{map[string]string{"REDIS_URL": "redis://:secret@%zz"}, `REDIS_URL: is not a URL; write one such as redis://…`},
		{map[string]string{"REDIS_URL": "ftp://:secret@h"}, `REDIS_URL: "ftp://:xxxxx@h" is not a URL that can be used here; start it with redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://`},
		{map[string]string{"COVE_API_KEY": "two words"}, `COVE_API_KEY: holds a space or a control character; write the key alone`},
		{map[string]string{"DOCKER_IMAGE": "a\nb"}, `DOCKER_IMAGE: holds a line break or a NUL byte; write it on one line`},
		{map[string]string{"SANDBOX_FALLBACK": "[docker"}, `SANDBOX_FALLBACK: "[docker" is not a JSON array of words; write one such as ["a", "b"], or a,b`},
		{map[string]string{"MSB_SHARED_VOLUME_PATH": "[1]"}, `MSB_SHARED_VOLUME_PATH: "[1]" is not a JSON array of words; write one such as ["a", "b"], or a,b`},
		{map[string]string{"MSB_SHARED_VOLUME_PATH": "/a"}, `MSB_SHARED_VOLUME_PATH: "/a" is not a volume; write host:sandbox or host:sandbox:ro, such as /srv/data:/data:ro`},
		{map[string]string{"MSB_SHARED_VOLUME_PATH": "/a:/b:rx"}, `MSB_SHARED_VOLUME_PATH: "/a:/b:rx" is not a volume; write host:sandbox or host:sandbox:ro, such as /srv/data:/data:ro`},
		{map[string]string{"MSB_SHARED_VOLUME_PATH": "a:/b"}, `MSB_SHARED_VOLUME_PATH: "a" must be an absolute path without . or ..`},
		{map[string]string{"MSB_SHARED_VOLUME_PATH": "/a:/x,/b:/x"}, `MSB_SHARED_VOLUME_PATH: "/x" is the target of two volumes`},
		{map[string]string{"COVE_VOLUMES": "/srv/../etc"}, `COVE_VOLUMES: "/srv/../etc" must be an absolute path without . or ..; write one such as /srv/data or /srv/out:rw`},
		{map[string]string{"COVE_ADDR": "8000"}, `COVE_ADDR: "8000" is not an address and port; write one such as 127.0.0.1:8000`},
		{map[string]string{"COVE_ADDR": "h:99999"}, `COVE_ADDR: "h:99999" is not an address and port; write one such as 127.0.0.1:8000`},
		{map[string]string{"COVE_NODE_ID": "a b"}, `COVE_NODE_ID: "a b" is not a node's name; use up to 128 letters, digits and signs without spaces`},
		{map[string]string{"MSB_DEFAULT_FLAVOR": "huge"}, `MSB_DEFAULT_FLAVOR: "huge" is unknown; use large, medium or small`},
		{map[string]string{"SANDBOX_PROVIDER": "podman"}, `SANDBOX_PROVIDER: "podman" is unknown; use local, docker or fake`},
		{map[string]string{"SANDBOX_TYPE": "podman"}, `SANDBOX_TYPE: "podman" is unknown; use local, docker or fake`},
	} {
		_, err := config.Load(sources(t, tc.env))
		checkRefused(t, err, tc.want)
	}
}

func TestContradictions(t *testing.T) {
	for _, tc := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"SANDBOX_PROVIDER": "local", "SANDBOX_TYPE": "docker"}, `SANDBOX_TYPE: "docker" contradicts SANDBOX_PROVIDER="local"; both set the same, so keep one`},
		{map[string]string{"SANDBOX_TIMEOUT_SEC": "33", "MSB_EXECUTION_TIMEOUT": "60"}, `MSB_EXECUTION_TIMEOUT: "60" contradicts SANDBOX_TIMEOUT_SEC="33s"; both set the same, so keep one`},
		{map[string]string{"COVE_TLS_CERT": "/c"}, `COVE_TLS_CERT: is set and COVE_TLS_KEY is not; set both, or neither`},
		{map[string]string{"COVE_TLS_KEY": "/k"}, `COVE_TLS_KEY: is set and COVE_TLS_CERT is not; set both, or neither`},
		{map[string]string{"DOCKER_TLS_VERIFY": "1"}, `DOCKER_TLS_VERIFY: is on and DOCKER_CERT_PATH is not set; set it to the directory with ca.pem, cert.pem and key.pem`},
		{
			map[string]string{"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "/c", "DOCKER_HOST": "unix:///s"},
			`DOCKER_TLS_VERIFY: is on and DOCKER_HOST is a local socket, which has no certificate; remove one of them`,
		},
		{map[string]string{"POOL_SIZE": "5", "MAX_POOL_SIZE": "4"}, `POOL_SIZE: POOL_SIZE is 5 and MAX_POOL_SIZE 4; make the first at most the second`},
		{map[string]string{"MAX_POOL_SIZE": "3"}, `MAX_POOL_SIZE: POOL_SIZE is 4 and MAX_POOL_SIZE 3; make the first at most the second`},
		{map[string]string{"SANDBOX_FALLBACK": "docker,podman"}, `SANDBOX_FALLBACK: names the unknown provider "podman"; use local, docker or fake`},
		{map[string]string{"SANDBOX_FALLBACK": "local"}, `SANDBOX_FALLBACK: names local, which is tried before already; name each provider once`},
		{map[string]string{"SANDBOX_FALLBACK": "docker,local"}, `SANDBOX_FALLBACK: names local after others, and it is tried first while SANDBOX_PROVIDER is not set; set SANDBOX_PROVIDER=docker too, or leave local out`},
		{map[string]string{"SANDBOX_TYPE": "docker", "SANDBOX_FALLBACK": "docker"}, `SANDBOX_FALLBACK: names docker, which is tried before already; name each provider once`},
		{map[string]string{"SANDBOX_TYPE": "docker", "SANDBOX_FALLBACK": "local,docker"}, `SANDBOX_FALLBACK: names docker, which is tried before already; name each provider once`},
		{map[string]string{"SANDBOX_FALLBACK": "docker,docker"}, `SANDBOX_FALLBACK: names docker, which is tried before already; name each provider once`},
		{map[string]string{"REDIS_URL": "redis://a", "REDIS_HOST": "b"}, `REDIS_HOST: "b" contradicts the host in REDIS_URL; keep one of them`},
		{map[string]string{"REDIS_URL": "redis://a", "REDIS_HOST": "a", "REDIS_PORT": "1"}, `REDIS_PORT: 1 contradicts the port in REDIS_URL; keep one of them`},
		{map[string]string{"REDIS_PORT": "6379"}, `REDIS_PORT: is set and REDIS_HOST is not; set the host too`},
		{
			map[string]string{"COVE_CLUSTER_SECRET": strings.Repeat("s", 32)},
			`COVE_CLUSTER_SECRET: is set and REDIS_URL is not, so this server would be alone and not a node; set REDIS_URL, or unset it`,
		},
		{
			map[string]string{"SANDBOX_MODE": "remote", "SANDBOX_URL": "http://a", "COVE_URL": "http://b"},
			`COVE_URL: "http://b" contradicts SANDBOX_URL="http://a"; both name the server, so keep one`,
		},
		{map[string]string{"SANDBOX_MODE": "local", "COVE_URL": "http://b"}, `SANDBOX_MODE: local contradicts COVE_URL, which names a server; remove one of them`},
		{
			map[string]string{"COVE_PREVIEW_DOMAIN": "p.example", "COVE_PREVIEW_ADDR": ":1"},
			`COVE_PREVIEW_ADDR: contradicts COVE_PREVIEW_DOMAIN; previews have a domain or an address of their own, so keep one`,
		},
		{map[string]string{"COVE_PREVIEW_DOMAIN": "Preview.Example"}, `COVE_PREVIEW_DOMAIN: "Preview.Example" is not a domain in lower case; write one such as preview.example.com, without a port`},
		{map[string]string{"COVE_PREVIEW_DOMAIN": "p.example:80"}, `COVE_PREVIEW_DOMAIN: "p.example:80" is not a domain in lower case; write one such as preview.example.com, without a port`},
		{map[string]string{"COVE_PREVIEW_DOMAIN": "p..example"}, `COVE_PREVIEW_DOMAIN: "p..example" is not a domain in lower case; write one such as preview.example.com, without a port`},
		{map[string]string{"COVE_PREVIEW_DOMAIN": "127.0.0.1"}, `COVE_PREVIEW_DOMAIN: "127.0.0.1" is not a domain in lower case; write one such as preview.example.com, without a port`},
		{
			map[string]string{"COVE_PREVIEW_DOMAIN": strings.Repeat("a.", 111)},
			`COVE_PREVIEW_DOMAIN: "` + strings.Repeat("a.", 40) + `" is not a domain in lower case; write one such as preview.example.com, without a port`,
		},
		{map[string]string{"COVE_PUBLIC_URL": "https://x/?a=b"}, `COVE_PUBLIC_URL: is more than a place; write one such as https://cove.example.com, without a user or a query`},
		{map[string]string{"COVE_PREVIEW_ADDR": "127.0.0.1:8000"}, `COVE_PREVIEW_ADDR: is the address of the server itself; previews need another one, such as 127.0.0.1:8001`},
		{map[string]string{"COVE_MODEL": "m"}, `COVE_MODEL: is set and COVE_MODEL_URL is not; set the URL of the model's API too`},
		{map[string]string{"COVE_MODEL_KEY": "k"}, `COVE_MODEL_KEY: is set and COVE_MODEL_URL is not; set the URL of the model's API too`},
	} {
		_, err := config.Load(sources(t, tc.env))
		checkRefused(t, err, tc.want)
	}
}

func TestPoliciesThatContradictThemselves(t *testing.T) {
	for text, program := range map[string]string{
		"{allow: [cat, rm], deny: [rm]}": "rm",
		"{ask: [cp], deny: [mv, cp]}":    "cp",
	} {
		src := sources(t, nil)
		writeFile(t, src, "policies:\n  p: "+text+"\n")
		_, err := config.Load(src)
		if cove.CodeOf(err) != cove.Invalid || !strings.Contains(cove.MessageOf(err), `p contradicts itself: "`+program+`" is in deny and in allow or ask; keep one`) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAddressesAreShownWithoutSecrets(t *testing.T) {
	for given, want := range map[string]string{
		"http://h:1/p":               "http://h:1/p",
		"https://token@h":            "https://xxxxx@h",
		"https://user:pw@h":          "https://xxxxx:xxxxx@h",
		"https://:pw@h":              "https://:xxxxx@h",
		"https://h/?a=b&key=pw&c&d=": "https://h/?a=xxxxx&key=xxxxx&xxxxx&d=",
		"https://h/#pw":              "https://h/#xxxxx",
	} {
		for _, v := range load(t, sources(t, map[string]string{"COVE_URL": given})).Values() {
			if v.Name == "COVE_URL" && v.Value != want {
				t.Errorf("%s is shown as %s, want %s", given, v.Value, want)
			}
		}
	}
}

func TestWhatAgreesIsNoContradiction(t *testing.T) {
	for _, env := range []map[string]string{
		{"SANDBOX_PROVIDER": "fake", "SANDBOX_TYPE": "fake"},
		{"SANDBOX_TIMEOUT_SEC": "60", "MSB_EXECUTION_TIMEOUT": "1m"},
		{"REDIS_URL": "redis://:pw@a", "REDIS_HOST": "a", "REDIS_PORT": "6379"},
		{"REDIS_HOST": "a", "COVE_CLUSTER_SECRET": "s"},
		{"SANDBOX_MODE": "remote", "SANDBOX_URL": "http://a", "COVE_URL": "http://a"},
		{"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "/c", "DOCKER_HOST": "tcp://d:2376"},
		{"COVE_MODEL_URL": "http://m", "COVE_MODEL_KEY": "k", "COVE_MODEL": "m"},
	} {
		if _, err := config.Load(sources(t, env)); err != nil {
			t.Errorf("%v: %v", env, err)
		}
	}
	src := sources(t, map[string]string{"SANDBOX_MODE": "local", "COVE_URL": "http://a"})
	src.Flags = map[string]string{"url": "http://b"}
	if c := load(t, src); c.Client.URL != "http://b" {
		t.Errorf("--url did not win: %s", c.Client.URL)
	}
}

func TestBadFlags(t *testing.T) {
	for flag, tc := range map[string]struct{ text, want string }{
		"log-level": {"loud", `--log-level: "loud" is unknown; use debug, info, warn or error`},
		"addr":      {" ", `--addr: is empty; write a value or leave it out`},
		"home":      {"", `--home: is empty; write a value or leave it out`},
		"provider":  {"podman", `--provider: "podman" is unknown; use local, docker or fake`},
		"config":    {"/nowhere/c.yaml", `--config: /nowhere/c.yaml cannot be read (no such file or directory); name a file that can be read`},
	} {
		src := sources(t, nil)
		src.Flags = map[string]string{flag: tc.text}
		_, err := config.Load(src)
		checkRefused(t, err, tc.want)
	}
}

func TestBadFiles(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"provider: local\ndocker:\n  imagee: x\n", `docker.imagee: is not a setting; did you mean docker.image? (line 3 of FILE)`},
		{"\nnonsense: 1\n", `nonsense: is not a setting; remove it; docs/configuration.md lists all keys (line 2 of FILE)`},
		{"home: /x\n", `home: is not a setting; remove it; docs/configuration.md lists all keys (line 1 of FILE)`},
		{"provider:\n", `provider: has no value; write one or remove the line (line 1 of FILE)`},
		{"provider: [a]\n", `provider: is a list; write a single value (line 1 of FILE)`},
		{"fallback: {a: b}\n", `fallback: is a group of settings; write a single value (line 1 of FILE)`},
		{"fallback: [a, [b]]\n", `fallback: has a list in its list; write plain words (line 1 of FILE)`},
		{"docker: yes\n", `docker: is a single value; write a group of settings below it (line 1 of FILE)`},
		{"exec:\n  timeout: 0\n", `exec.timeout: 0 is out of range; use 0.001 to 86400 (line 2 of FILE)`},
		{"exec:\n  timeout: -1\n", `exec.timeout: -1 is out of range; use 0.001 to 86400 (line 2 of FILE)`},
		{"session: {lru_eviction: perhaps}\n", `session.lru_eviction: "perhaps" is neither yes nor no; use true or false (line 1 of FILE)`},
		{"session:\n  max: .inf\n", `session.max: ".inf" is not a whole number; use 1 to 1000000 (line 2 of FILE)`},
		{"pool:\n  size: 9\n  max_size: 8\n", `pool.size: POOL_SIZE is 9 and MAX_POOL_SIZE 8; make the first at most the second (FILE:2)`},
		{"provider: podman\n", `provider: "podman" is unknown; use local, docker or fake (FILE:1)`},
		{"provider: local\nprovider: docker\n", `FILE: is not YAML: mapping key "provider" already defined at [1:1] (line 2)`},
		{"provider: &a local\n", `FILE: uses anchor, which settings files do not know; write the value itself (line 1)`},
		{"fallback: [*a]\n", `FILE: uses alias, which settings files do not know; write the value itself (line 1)`},
		{"provider: !!str local\n", `FILE: uses tag, which settings files do not know; write the value itself (line 1)`},
		{"docker:\n  <<: {a: b}\n", `FILE: has a key that is not a plain word; write a word (line 2)`},
		{"- a\n", `FILE: is a list and no settings; write lines such as provider: local (line 1)`},
		{"a: b\n---\nc: d\n", `FILE: starts a second document; write all settings in one (line 3)`},
		{"flavors: 3\n", `flavors: is a single value; write a group of names below it (line 1 of FILE)`},
		{"flavors:\n  Big One: {cpus: 1, memory: 1g}\n", `flavors: "Big One" is not a name; use up to 64 small letters, digits, - . and _ (line 2 of FILE)`},
		{"flavors:\n  big: 3\n", `flavors: big is a single value; write it as {cpus: 1, memory: 1g} (line 2 of FILE)`},
		{"flavors:\n  big: {cpus: 1}\n", `flavors: big lacks cpus or memory; write both, such as {cpus: 1, memory: 1g} (line 2 of FILE)`},
		{"flavors:\n  big:\n    cpu: 1\n", `flavors: big has the unknown key "cpu"; use cpus, memory and pids (line 3 of FILE)`},
		{"flavors:\n  big:\n    cpus: 0\n", `flavors: big.cpus: 0 is out of range; use 0.01 to 1024 (line 3 of FILE)`},
		{"policies:\n  p: 3\n", `policies: p is a single value; write it as {allow: [cat, grep], deny: [rm]} (line 2 of FILE)`},
		{"policies:\n  p: {allow: {}}\n", `policies: p.allow: is a group of settings; write a list such as [a, b] (line 2 of FILE)`},
		{"policies:\n  p: {alow: [a]}\n", `policies: p.alow: is not a setting; use allow, deny, ask, helpers, network, timeout and max_output (line 2 of FILE)`},
		{"policies:\n  p: {allow: [a], network: open}\n", `policies: p.network: only none can be set, which keeps commands from the network; leave it out for what the session's network mode allows (line 2 of FILE)`},
		{"policies:\n  p: {allow: [a], network: [none]}\n", `policies: p.network: only none can be set, which keeps commands from the network; leave it out for what the session's network mode allows (line 2 of FILE)`},
		{"policies:\n  p: {deny: [a]}\n", `policies: p allows nothing; name programs in allow or ask (line 2 of FILE)`},
		{"policies:\n  agent-bash: {allow: [a]}\n", `policies: agent-bash is built in; choose another name (line 2 of FILE)`},
		{"policies:\n  p: {allow: [a], timeout: 0}\n", `policies: p.timeout: 0 is out of range; use 0.001 to 86400 (line 2 of FILE)`},
		{"command_policy: nobody\n", `command_policy: "nobody" is unknown; use agent-bash, or the path of a policy file (FILE:1)`},
		{"policies:\n  P: {allow: [a]}\n", `policies: "P" is not a name; use up to 64 small letters, digits, - . and _ (line 2 of FILE)`},
	} {
		src := sources(t, nil)
		path := writeFile(t, src, tc.text)
		_, err := config.Load(src)
		checkRefused(t, err, strings.ReplaceAll(tc.want, "FILE", path))
	}
}

func TestSyntaxErrorShowsNoExcerpt(t *testing.T) {
	src := sources(t, nil)
	writeFile(t, src, "client:\n  api_key: topsecret\n  : :\n\t- x\n")
	_, err := config.Load(src)
	if cove.CodeOf(err) != cove.Invalid || strings.Contains(err.Error(), "topsecret") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	src := sources(t, map[string]string{"COVE_CONFIG": "missing.yaml"})
	_, err := config.Load(src)
	if want := "COVE_CONFIG: "; !strings.HasPrefix(cove.MessageOf(err), want) {
		t.Errorf("got %v", err)
	}

	src = sources(t, nil)
	home, _ := src.Env("COVE_HOME")
	if err := os.Mkdir(filepath.Join(home, "config.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = config.Load(src)
	checkRefused(t, err, "COVE_CONFIG: "+filepath.Join(home, "config.yaml")+" cannot be read (is a directory); name a file that can be read")

	src = sources(t, nil)
	path := writeFile(t, src, strings.Repeat("#", 1<<20+1))
	_, err = config.Load(src)
	checkRefused(t, err, "COVE_CONFIG: "+path+" is longer than 1m; a settings file is shorter")
}
