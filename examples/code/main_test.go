package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/inprocess"
	"github.com/cove-sandbox/cove/internal/daemon/daemontest"
	sandbox "github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

func TestMain(m *testing.M) {
	inprocess.Main()
	os.Exit(m.Run())
}

// output is what the program prints in either mode.
const output = `session: printed "x = 42\n", the value is 43, fresh true and then false
another session: the code failed with exit code 1: NameError: name 'x' is not defined
small: 1 CPUs, 1g, 333328333350000
medium: 2 CPUs, 2g, 333328333350000
volume: /mnt/input, writable false
volume: /mnt/output, writable true
at once: python said "task 1\n"
at once: node said "task 2\n"
at once: python said "task 3\n"
at once: node said "task 4\n"
picture: larger than 100 by 100 true, more than one colour true
table: [city sales]
  [Oslo 8]
  [Rome 4]
table as HTML true
resources: 1 session, 1 of them medium, 2g of memory, 2 CPUs
stats of ada: base, medium, running
it uses memory true
the code: mend it (the code failed with exit code 1: ZeroDivisionError: division by zero)
a limit: use less, or ask for more
the command: mend it (exit code 2)
the session: open one
no sandbox: ask for another kind
the settings: mend them (POOL_SIZE: "many" is not a whole number; use 0 to 10000)
the connection: try again later
`

func TestBothModes(t *testing.T) {
	p, err := sandbox.New(sandbox.Config{Dir: providertest.Dir(t)})
	if err != nil {
		t.Fatal(err)
	}
	providertest.Ready(t, p)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	needs(t, "/usr/bin/python3", "/usr/bin/node", "/usr/lib/python3/dist-packages/pandas", "/usr/lib/python3/dist-packages/matplotlib")
	for _, mode := range []string{"local", "remote"} {
		t.Run(mode, func(t *testing.T) {
			in, out := t.TempDir(), t.TempDir()
			if err := os.WriteFile(filepath.Join(in, "data.txt"), []byte("hello"), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(out, 0o777); err != nil {
				t.Fatal(err)
			}
			shared, err := json.Marshal([]string{in + ":/mnt/input:ro", out + ":/mnt/output"})
			if err != nil {
				t.Fatal(err)
			}
			env := map[string]string{"SANDBOX_PROVIDER": "local", "POOL_SIZE": "0", "MSB_SHARED_VOLUME_PATH": string(shared)}
			if mode == "remote" {
				at, key := daemontest.Serve(t, env)
				env = map[string]string{"COVE_URL": at.URL, "COVE_API_KEY": key}
			} else {
				env["COVE_URL"], env["COVE_HOME"] = "", filepath.Join(t.TempDir(), "home")
			}
			for name, value := range env {
				t.Setenv(name, value)
			}
			var said bytes.Buffer
			if err := run(t.Context(), &said); err != nil {
				t.Fatalf("%v\n%s", err, said.String())
			}
			if diff := cmp.Diff(output, said.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if text, err := os.ReadFile(filepath.Join(out, "result.txt")); err != nil || string(text) != "HELLO" {
				t.Errorf("the volume has %q, %v", text, err)
			}
		})
	}
}

// needs skips the test where the host, whose programs the sandboxes see, lacks
// something; where COVE_REQUIRE asks for local sandboxes, it must be there.
func needs(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil && strings.Contains(os.Getenv("COVE_REQUIRE"), "local") {
			t.Fatalf("scripts/setup.sh installs what is missing: %v", err)
		} else if err != nil {
			t.Skipf("scripts/setup.sh installs what is missing: %v", err)
		}
	}
}

func TestKinds(t *testing.T) {
	if kind(nil) != "no error" || kind(cove.Errorf(cove.Conflict, "x")) != "something else" {
		t.Errorf("%q, %q", kind(nil), kind(cove.Errorf(cove.Conflict, "x")))
	}
}

func TestAddressThatIsNone(t *testing.T) {
	t.Setenv("COVE_URL", "not a url")
	if err := run(t.Context(), &bytes.Buffer{}); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("%v", err)
	}
}
