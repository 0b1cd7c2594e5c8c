package sdktest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/daemon/daemontest"
	"github.com/cove-sandbox/cove/internal/sdktest"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

func TestMain(m *testing.M) {
	local.Main()
	goleak.VerifyTestMain(m)
}

// columnTime bounds all cases of one SDK. What is slow is a loaded machine.
const columnTime = 12 * time.Minute

// sdk is one generation of an SDK, in one mode.
type sdk struct {
	tree, mode string
}

func (s sdk) js() bool { return strings.HasPrefix(s.tree, "js-") }

// sdks are the columns of the table. The older generation has no setting for URLs.
var sdks = []sdk{
	{"js-new", "url"},
	{"js-new", "domain"},
	{"js-old", "domain"},
	{"py-new", "url"},
	{"py-new", "domain"},
	{"py-old", "domain"},
}

// TestNewestSDKs runs some of the cases with the newest SDK of each language, one in
// each mode.
func TestNewestSDKs(t *testing.T) {
	trees := providertest.Needs(t, "sdks", "COVE_TEST_SDKS")
	for _, s := range []sdk{{"js-new", "url"}, {"py-new", "domain"}} {
		t.Run(s.mode+"/"+s.tree, func(t *testing.T) {
			t.Parallel()
			const cases = smoke + ",connect,list,kill,wrong_key,other_tenant,unknown_sandbox,run_fail,list_dir,code_error"
			wantPassed(t, cases, play(t, trees, s, serveMode(t, s.mode), cases))
		})
	}
}

// wantPassed wants each of the cases to have passed.
func wantPassed(t *testing.T, cases string, lines map[string]sdktest.Line) {
	t.Helper()
	for name := range strings.SplitSeq(cases, ",") {
		if l := lines[name]; l.Status != sdktest.Pass {
			t.Errorf("%s: %s %s", name, l.Status, l.Why)
		}
	}
}

// serveMode runs a server that an SDK finds in a mode.
func serveMode(t *testing.T, mode string) served {
	t.Helper()
	if mode == "url" {
		return serveURL(t, "local")
	}
	return serveDomain(t)
}

// TestSDKs runs every case with every SDK, and compares the table of what works with
// docs/compat.md.
func TestSDKs(t *testing.T) {
	tier.Full(t, "TestNewestSDKs runs some cases with the newest SDKs; internal/e2bapi has tests of every route")
	trees := providertest.Needs(t, "sdks", "COVE_TEST_SDKS")
	some := os.Getenv("CASES") // for who works on one
	columns := make([]sdktest.Column, len(sdks))
	t.Run("columns", func(t *testing.T) {
		for i, s := range sdks {
			columns[i].Title = title(t, s.tree, s.mode)
			t.Run(s.mode+"/"+s.tree, func(t *testing.T) {
				t.Parallel()
				columns[i].Lines = play(t, trees, s, serveMode(t, s.mode), some)
				for _, p := range columns[i].Problems() {
					if some == "" || !strings.HasSuffix(p, sdktest.DidNotRun) {
						t.Error(p)
					}
				}
			})
		}
	})
	if some == "" {
		comparePage(t, columns)
	}
}

// smoke are the cases that another provider is tried with.
const smoke = "create,run,run_timeout,background,write,read,watch,run_code,pause"

// TestGvisor runs some of the cases where sandboxes have a kernel of their own.
func TestGvisor(t *testing.T) {
	tier.Full(t, "TestNewestSDKs runs the same cases on local; provider/gvisor runs the suite of providers")
	runsc := providertest.Needs(t, "gvisor", "COVE_TEST_RUNSC")
	trees := providertest.Needs(t, "sdks", "COVE_TEST_SDKS")
	at := serveURL(t, "gvisor", "COVE_GVISOR_RUNSC="+runsc)
	lines := play(t, trees, sdk{"js-new", "url"}, at, smoke)
	wantPassed(t, smoke, lines)
}

// served is a server, as an SDK is told of it.
type served struct {
	env    []string
	resolv string // of domain mode: the file that names where names are found
}

// settings are those of each server. Cases end their sandboxes, so that nothing else
// needs to be kept small.
func settings(provider string, more ...string) map[string]string {
	all := map[string]string{"SANDBOX_PROVIDER": provider, "POOL_SIZE": "0"}
	if host := os.Getenv("COVE_TEST_DOCKER_HOST"); host != "" {
		all["DOCKER_HOST"] = host
	}
	for _, m := range more {
		name, value, _ := strings.Cut(m, "=")
		all[name] = value
	}
	return all
}

func serveURL(t *testing.T, provider string, more ...string) served {
	t.Helper()
	// Only sandboxes with an image of their own need an agent that is brought in.
	at, _ := daemontest.ServeWith(t, settings(provider, more...), daemon.Parts{Agent: os.Getenv("COVE_TEST_AGENT")})
	return served{env: append(keys(t, at), "E2B_API_URL="+at.URL, "E2B_SANDBOX_URL="+at.URL, "E2B_VOLUME_API_URL="+at.URL)}
}

// keys makes a key for the cases, and one of another tenant.
func keys(t *testing.T, at daemon.Ready) (env []string) {
	t.Helper()
	c, err := client.New("unix://"+at.Socket, "")
	if err != nil {
		t.Fatal(err)
	}
	scopes := []cove.Scope{cove.ScopeRead, cove.ScopeWrite, cove.ScopeExec, cove.ScopeFileRead, cove.ScopeFileWrite, cove.ScopeTemplates}
	for name, tenant := range map[string]string{"E2B_API_KEY": "cases", "CASES_OTHER_KEY": "others"} {
		_, secret, err := c.Admin().CreateKey(t.Context(), cove.KeyRequest{Name: tenant, Tenant: tenant, Form: cove.KeyE2B, Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+secret)
	}
	return env
}

// play runs the cases named, or all, with an SDK.
func play(t *testing.T, trees string, s sdk, at served, only string) map[string]sdktest.Line {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), columnTime, errors.New("the cases take too long"))
	defer cancel()
	cmd := runCases(ctx, t, trees, s)
	cmd.Env = append(slices.Clone(at.env), "CASES="+only, "CASES_MODE="+s.mode, "CASES_DOCKER="+os.Getenv("COVE_TEST_DOCKER_HOST"),
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME="+t.TempDir(), "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1")
	if at.resolv != "" {
		inNames(cmd, at.resolv)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		t.Errorf("the cases ended early: %v\n%s", err, stderr.Bytes())
	}
	lines := map[string]sdktest.Line{}
	for scan := bufio.NewScanner(bytes.NewReader(out)); scan.Scan(); {
		var l sdktest.Line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			t.Errorf("a case printed %q", scan.Text())
			continue
		}
		t.Logf("%s %s %.300s", l.Case, l.Status, l.Why)
		lines[l.Case] = l
	}
	return lines
}

// runCases is the program that runs the cases of an SDK, as a user who has installed it would.
func runCases(ctx context.Context, t *testing.T, trees string, s sdk) *exec.Cmd {
	t.Helper()
	if !s.js() {
		return exec.CommandContext(ctx, filepath.Join(trees, s.tree, "bin", "python3"), filepath.Join(program.Input(t, "testdata/py"), "main.py"))
	}
	// Node looks for packages beside the program, so that this is a folder with both.
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/js")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(trees, s.tree, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(trees, "bin", "node"), "main.mjs")
	cmd.Dir = dir
	return cmd
}

// inNames has a program find names where resolv says, and nobody else.
func inNames(cmd *exec.Cmd, resolv string) {
	const script = `mount --bind "$0" /etc/resolv.conf && exec "$@"`
	cmd.Args = append([]string{"sh", "-c", script, resolv, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
}
