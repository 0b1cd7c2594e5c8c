package e2bapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/e2bapi"
	"github.com/cove-sandbox/cove/internal/policy"
)

// TestCommandPolicy runs what E2B's SDKs send under a command policy: of the session, of
// the engine's settings, and of the server alone.
func TestCommandPolicy(t *testing.T) {
	t.Parallel()
	const name = "agent-bash"
	for what, o := range map[string]struct {
		rig  rigOptions
		spec cove.Spec
	}{
		"session": {rigOptions{}, cove.Spec{Policy: name}},
		"default": {rigOptions{engine: func(c *engine.Config) { c.Defaults.Policy = name }}, cove.Spec{}},
		"server": {rigOptions{
			engine: func(c *engine.Config) { c.Policy, _ = policy.New(policy.Config{Default: name}) },
			face:   func(c *e2bapi.Config) { c.Policy = name },
		}, cove.Spec{}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := serveWith(t, o.rig)
			id := r.open(o.spec)
			if got := r.run(id, "echo hi | head -n 1; echo $HOME $USER; exit 3").all(); got.stdout != "hi\n/home/user user\n" || got.end == nil || got.end.ExitCode != 3 {
				t.Errorf("an allowed line: %+v", got)
			}
			for refused, want := range map[string]string{
				bash("rm -rf x"): "rm is denied",
				`{"process":{"cmd":"/bin/bash","args":["-l","-c","echo hi"],"envs":{"LD_PRELOAD":"/tmp/x"}}}`:  "LD_PRELOAD",
				`{"process":{"cmd":"/bin/bash","args":["-l","-c","echo hi"],"envs":{"PATH":"/tmp"}}}`:          "PATH",
				`{"process":{"cmd":"/bin/bash","args":["-l","/workspace/script"]}}`:                            "bash",
				`{"process":{"cmd":"/bin/bash","args":["-l","-c","echo hi"],"envs":{"BASH_ENV":"/tmp/hook"}}}`: "BASH_ENV",
			} {
				got := r.stream(t.Context(), id, startCall, refused).all()
				if got.end == nil || got.end.ExitCode != 126 || !strings.Contains(got.stderr, want) {
					t.Errorf("%s: %+v", refused, got)
				}
			}
			got := r.stream(t.Context(), id, startCall, `{"process":{"cmd":"/bin/bash","args":["-i","-l"]},"pty":{"size":{"cols":80,"rows":24}}}`).all()
			if got.pid != 0 || got.code != "permission_denied" || !strings.Contains(got.message, "command policy agent-bash") || !strings.Contains(got.message, "without a terminal") {
				t.Errorf("a terminal: %+v", got)
			}
		})
	}
}

// TestLineUnderAPolicy: the shell of a line is no login shell, which would run a profile
// that no policy has seen.
func TestLineUnderAPolicy(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{Policy: "agent-bash"})
	s := r.stream(t.Context(), id, startCall, bash("cat", `"stdin":true`))
	pid := s.began()
	status, body := r.unary(id, "/process.Process/List", `{}`)
	if status != http.StatusOK || !strings.Contains(body, `"cmd":"/bin/bash","args":["-c","cat"]`) {
		t.Errorf("%d %s", status, body)
	}
	r.unary(id, "/process.Process/SendSignal", fmt.Sprintf(`{"process":{"pid":%d},"signal":"SIGNAL_SIGKILL"}`, pid))
	s.all()
}
