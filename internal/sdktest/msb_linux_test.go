package sdktest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/daemon/daemontest"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// exampleTime bounds one example.
const exampleTime = 3 * time.Minute

// TestMicrosandbox runs the examples of the last microsandbox client that spoke to a
// server.
func TestMicrosandbox(t *testing.T) {
	trees := providertest.Needs(t, "sdks", "COVE_TEST_SDKS")
	at, _ := daemontest.Serve(t, settings("local", "COVE_MSB_ADDR=127.0.0.1:0"))
	for name, tc := range map[string]struct{ namespace, want string }{
		"example 1": {"", "Hello Python!\n"},
		"example 2": {"default", "Hello World\nExit code: 0\nSuccess: True\n" +
			"ls: cannot access '/nonexistent': No such file or directory\n" +
			"Command timed out: Failed to execute command: " + `{"code":5002,"detail":"the command did not end within 2s","error":"Internal server error"}` + "\n"},
		"more": {"team", "team one True True\nTrue ZeroDivisionError: division by zero\nkept\n" +
			"Failed to start sandbox: " + `{"code":3001,"error":"Access denied"}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "example 2" {
				tier.Full(t, "it waits for a timeout, as the tests of internal/msbapi do")
			}
			ctx, cancel := context.WithTimeout(t.Context(), exampleTime)
			defer cancel()
			file := filepath.Join(program.Input(t, "testdata/msb"), name+".py")
			if n, ok := strings.CutPrefix(name, "example "); ok {
				file = example(t, trees, n)
			}
			cmd := exec.CommandContext(ctx, filepath.Join(trees, "msb", "bin", "python3"), file)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "MSB_SERVER_URL=" + at.MSBURL, "MSB_API_KEY=" + msbKey(t, at, tc.namespace)}
			out, err := cmd.CombinedOutput()
			if diff := cmp.Diff(tc.want, string(out)); err != nil || diff != "" {
				t.Errorf("%v: %s", err, diff)
			}
		})
	}
}

// example writes the nth program of the package's own README, which comes with it, to a
// file.
func example(t *testing.T, trees, n string) string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(trees, "msb", "lib", "microsandbox-0.1.8.dist-info", "METADATA"))
	if err != nil {
		t.Fatal(err)
	}
	i, err := strconv.Atoi(n)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```python\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(blocks) < i {
		t.Fatalf("the README has %d programs", len(blocks))
	}
	file := filepath.Join(t.TempDir(), "example.py")
	if err := os.WriteFile(file, blocks[i-1][1], 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// msbKey makes a key for a namespace, or for all.
func msbKey(t *testing.T, at daemon.Ready, namespace string) string {
	t.Helper()
	c, err := client.New("unix://"+at.Socket, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, secret, err := c.Admin().CreateKey(t.Context(), cove.KeyRequest{
		Name: "msb", Form: cove.KeyMicrosandbox, Scopes: []cove.Scope{cove.ScopeRead, cove.ScopeWrite, cove.ScopeExec, cove.ScopeFileRead, cove.ScopeFileWrite}, Limits: cove.KeyLimit{Namespace: namespace},
	})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}
