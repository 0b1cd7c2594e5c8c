package config_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
)

func TestSecretsOfSandboxes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte("from the file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	src := sources(t, map[string]string{"THE_KEY": " from the environment "})
	writeFile(t, src, "egress:\n  private: [10.1.2.3/16, 192.168.1.1, 'fd00::/8']\n  rate: 2m\n  idle: 10s\nsecrets:\n"+
		"  a: {hosts: [a.test], header: X-A, value: 'in the file: #1'}\n"+
		"  b: {hosts: ['*.b.test', 'b.test:8443'], header: X-B, value_env: THE_KEY}\n"+
		"  c: {hosts: c.test, header: X-C, value_file: "+file+", plain: yes}\n")
	c := load(t, src)
	want := config.Secrets{
		"a": {Hosts: []string{"a.test"}, Header: "X-A", Value: "in the file: #1"},
		"b": {Hosts: []string{"*.b.test", "b.test:8443"}, Header: "X-B", Value: "from the environment", ValueEnv: "THE_KEY"},
		"c": {Hosts: []string{"c.test"}, Header: "X-C", Value: "from the file", ValueFile: file, Plain: true},
	}
	for name := range want {
		if got := c.Secrets[name]; got.Value.Reveal() != want[name].Value.Reveal() || got.Header != want[name].Header || got.Plain != want[name].Plain || !cmp.Equal(got.Hosts, want[name].Hosts) {
			t.Errorf("%s: %q", name, got.Value.Reveal())
		}
	}
	if text := fmt.Sprintf("%+v %#v", c.Secrets, c.Secrets); strings.Contains(text, "from the") || !strings.Contains(text, "****") {
		t.Errorf("printed: %s", text)
	}
	for _, part := range []string{"value_env: 'THE_KEY'", "value_file: '" + file + "', plain: true}", "'*.b.test'"} {
		if !strings.Contains(c.String(), part) {
			t.Errorf("the printed settings lack %s", part)
		}
	}
	ranges, err := c.Egress.Ranges()
	if err != nil || fmt.Sprint(ranges) != "[10.1.0.0/16 192.168.1.1/32 fd00::/8]" || ranges[0] != netip.MustParsePrefix("10.1.0.0/16") {
		t.Errorf("ranges: %v, %v", ranges, err)
	}
	if e := c.Egress; e.Rate != 2*cove.MiB || e.Idle != 10*time.Second || e.Connections != 256 || e.PerSecond != 200 {
		t.Errorf("egress: %+v", e)
	}
}

func TestBadSecretsOfSandboxes(t *testing.T) {
	huge := filepath.Join(t.TempDir(), "huge")
	if err := os.WriteFile(huge, make([]byte, 1<<15), 0o600); err != nil {
		t.Fatal(err)
	}
	const as = "{hosts: [api.example.com], header: Authorization, value_env: NAME}"
	for _, tc := range []struct{ text, want string }{
		{"secrets: 3\n", `secrets: is a single value; write a group of names below it (line 1 of FILE)`},
		{"secrets:\n  A B: {}\n", `secrets: "A B" is not a name; use up to 64 small letters, digits, - . and _ (line 2 of FILE)`},
		{"secrets:\n  a: 3\n", `secrets: a is a single value; write it as ` + as + ` (line 2 of FILE)`},
		{"secrets:\n  a: {hosts: [x], value: v}\n", `secrets: a lacks hosts or header; write it as ` + as + ` (line 2 of FILE)`},
		{"secrets:\n  a: {hosts: [x], header: h}\n", `secrets: a has 0 values; write one of value, value_env and value_file (line 2 of FILE)`},
		{"secrets:\n  a: {hosts: [x], header: h, value: v, value_env: E}\n", `secrets: a has 2 values; write one of value, value_env and value_file (line 2 of FILE)`},
		{"secrets:\n  a: {hosts: {x: y}, header: h, value: v}\n", `secrets: a.hosts: is a group of settings; write a list such as [a, b] (line 2 of FILE)`},
		{"secrets:\n  a: {hosts: [x], header: [h], value: v}\n", `secrets: a.header: is a list or empty; write a single value (line 2 of FILE)`},
		{"secrets:\n  a: {hosts: [x], header: h, worth: v}\n", `secrets: a.worth: is not a setting; use hosts, header, plain and one of value, value_env and value_file (line 2 of FILE)`},
		{"secrets:\n  a: {hosts: [x], header: h, value: v, plain: perhaps}\n", `secrets: a.plain: "perhaps" is neither yes nor no; use true or false (line 2 of FILE)`},
		{"secrets:\n  a: {hosts: [x], header: h, value_env: NOBODY}\n", `secrets: a takes its value from NOBODY, which is not set; set it (FILE:1)`},
		{"secrets:\n  a: {hosts: [x], header: h, value_file: /nowhere}\n", `secrets: a: /nowhere cannot be read (no such file or directory); name a file that holds the value and nothing else (FILE:1)`},
		{"secrets:\n  a: {hosts: [x], header: h, value_file: " + huge + "}\n", `secrets: a: ` + huge + ` cannot be read (it is empty or too long); name a file that holds the value and nothing else (FILE:1)`},
		{"egress:\n  private: [everything]\n", `egress.private: "everything" is not a range of addresses; write one such as 10.1.0.0/16 (FILE:2)`},
		{"egress:\n  connections: 0\n", `egress.connections: 0 is out of range; use 1 to 65536 (line 2 of FILE)`},
	} {
		src := sources(t, nil)
		path := writeFile(t, src, tc.text)
		_, err := config.Load(src)
		checkRefused(t, err, strings.ReplaceAll(tc.want, "FILE", path))
	}
}
