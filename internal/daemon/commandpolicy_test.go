package daemon_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// unlistedWays run /usr/bin/mkdir in the roads by which a session starts programs. The
// check of the syntax lets each of them pass under agent-bash, which does not list mkdir.
var unlistedWays = map[string]func(ctx context.Context, p cove.Platform, id cove.ID) (cove.Outcome, error){
	"line":   executes(`a='x[$(/usr/bin/mkdir mark)]'; RANDOM=$a; echo done`),
	"argv":   executes("", "python3", "start.py"),
	"trial":  tries,
	"bash":   runsCode("bash", `a='x[$(/usr/bin/mkdir mark)]'; RANDOM=$a; python3 start.py`),
	"python": runsCode("python", `import subprocess; subprocess.run(["/usr/bin/mkdir", "mark"])`),
	"background": func(ctx context.Context, p cove.Platform, id cove.ID) (cove.Outcome, error) {
		started, err := p.Processes(id).Start(ctx, cove.ExecRequest{Line: "python3 start.py; python3 start.py"})
		if err != nil {
			return "", err
		}
		ran, err := p.Processes(id).Wait(ctx, started.PID)
		if err != nil {
			return "", err
		}
		return ran.Outcome, nil
	},
}

func executes(line string, argv ...string) func(context.Context, cove.Platform, cove.ID) (cove.Outcome, error) {
	return func(ctx context.Context, p cove.Platform, id cove.ID) (cove.Outcome, error) {
		ran, err := p.Processes(id).Exec(ctx, cove.ExecRequest{Line: line, Argv: argv})
		if err != nil {
			return "", err
		}
		return ran.Outcome, nil
	}
}

func runsCode(language, text string) func(context.Context, cove.Platform, cove.ID) (cove.Outcome, error) {
	return func(ctx context.Context, p cove.Platform, id cove.ID) (cove.Outcome, error) {
		ran, err := p.Contexts(id).Run(ctx, cove.CodeRequest{Language: language, Code: text})
		if err != nil {
			return "", err
		}
		return ran.Outcome, nil
	}
}

func tries(ctx context.Context, p cove.Platform, id cove.ID) (cove.Outcome, error) {
	ran, err := p.Trials(id).Run(ctx, cove.TrialRequest{ExecRequest: cove.ExecRequest{Argv: []string{"python3", "start.py"}}, Then: cove.ThenCommit})
	if err != nil {
		return "", err
	}
	return ran.Execution.Outcome, nil
}

// TestUnlistedProgramsAreStopped starts a program that is not on the list of the session's
// command policy, in every way there is. In a session without one it runs.
func TestUnlistedProgramsAreStopped(t *testing.T) {
	for _, pool := range []string{"0", "1"} {
		t.Run("pool "+pool, func(t *testing.T) {
			r, end := serve(t, settings(t, "SANDBOX_PROVIDER", "local", "POOL_SIZE", pool), daemon.Options{})
			defer end()
			p := dial(t, r.URL, keyOf(t, r))
			for name, way := range unlistedWays {
				t.Run(name, func(t *testing.T) {
					free := openWith(t, p, "")
					if outcome, err := way(t.Context(), p, free.ID); err != nil || !marked(t, p, free.ID) {
						t.Errorf("without a policy it starts nothing: %s, %v", outcome, err)
					}
					bound := openWith(t, p, "agent-bash")
					if bound.Isolation.Policy != cove.Hard {
						t.Skip("this kernel does not keep programs to a list: isolation.policy is " + string(bound.Isolation.Policy))
					}
					outcome, err := way(t.Context(), p, bound.ID)
					if err != nil || outcome == cove.Blocked {
						t.Errorf("it was to pass the check of the syntax: %s, %v", outcome, err)
					}
					if marked(t, p, bound.ID) {
						t.Error("a program that is not on the list ran")
					}
				})
			}
		})
	}
}

// TestUnlistedProgramsHaveNoNetwork: agent-bash lists no program for the network, so that
// what bash and Python have of their own does not reach it either.
func TestUnlistedProgramsHaveNoNetwork(t *testing.T) {
	r, end := serve(t, settings(t, "SANDBOX_PROVIDER", "local"), daemon.Options{})
	defer end()
	p := dial(t, r.URL, keyOf(t, r))
	for name, argv := range map[string][]string{
		"bash":   nil,
		"python": {"python3", "-c", `import socket; socket.create_connection(("127.0.0.1", 1))`},
	} {
		req := cove.ExecRequest{Argv: argv}
		if argv == nil {
			req.Line = `x=/dev/tcp/127.0.0.1/1; echo > $x`
		}
		for policy, want := range map[string]string{"": "refused", "agent-bash": "denied"} {
			s := openWith(t, p, policy)
			if policy != "" && s.Isolation.Policy != cove.Hard {
				t.Skip("this kernel does not keep programs to a list: isolation.policy is " + string(s.Isolation.Policy))
			}
			ran, err := p.Processes(s.ID).Exec(t.Context(), req)
			if err != nil || ran.Outcome == cove.Blocked || !strings.Contains(string(ran.Stderr.Data), want) {
				t.Errorf("%s under the policy %q: %+v, %v; want %q", name, policy, ran, err, want)
			}
		}
	}
}

// startScript is a script that starts the program.
const startScript = `import os
os.system("/usr/bin/mkdir mark")
`

func openWith(t *testing.T, p cove.Platform, policy string) *cove.Session {
	t.Helper()
	s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Policy: policy}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = p.Sessions().Close(context.WithoutCancel(t.Context()), s.ID, false) })
	if err := p.Files(s.ID).Write(t.Context(), "start.py", strings.NewReader(startScript), 0o644); err != nil {
		t.Fatal(err)
	}
	return s
}

// marked reports whether the program left its directory.
func marked(t *testing.T, p cove.Platform, id cove.ID) bool {
	t.Helper()
	_, err := p.Files(id).Stat(t.Context(), "mark")
	if err != nil && cove.CodeOf(err) != cove.NotFound {
		t.Error(err)
	}
	return err == nil
}
