package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/policy"
)

// listening makes sandboxes that note under which list the last program starts.
type listening struct {
	cove.Provider
	last *cove.Programs
}

type listeningSandbox struct {
	cove.Sandbox
	p *listening
}

func (p *listening) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	s, err := p.Provider.Create(ctx, id, spec)
	return listeningSandbox{s, p}, err
}

func (s listeningSandbox) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	s.p.last = cmd.Programs
	return s.Sandbox.Start(ctx, cmd)
}

// TestUnlistedProgramsUntilAPersonAgrees: a program that a person agreed to is on the list
// of the command that names it, and of no other.
func TestUnlistedProgramsUntilAPersonAgrees(t *testing.T) {
	p := &listening{}
	boss := newWorld(t).open(func(c *engine.Config) {
		p.Provider, c.Providers = c.Providers[0], []cove.Provider{p}
		c.Policy, _ = policy.New(policy.Config{Profiles: []policy.Profile{{Name: "careful", Allow: []string{"echo"}, Ask: []string{"cat"}, Offline: true}}})
		c.Policies = []string{"careful"}
		c.Approve = func(context.Context, cove.Action, cove.Decision) (bool, error) { return true, nil }
	}).As(boss)
	id := mustOpen(t, boss, cove.Spec{Policy: "careful"}).ID
	for _, c := range []struct {
		req   cove.ExecRequest
		names []string
	}{
		{cove.ExecRequest{Line: "echo x"}, []string{"echo"}},
		{cove.ExecRequest{Line: "echo x | cat"}, []string{"cat", "echo"}},
		{cove.ExecRequest{Argv: []string{"cat", "/dev/null"}}, []string{"cat", "echo"}},
		{cove.ExecRequest{Line: "x='a[$(cat)]'; echo x"}, []string{"echo"}},
	} {
		if _, err := boss.Processes(id).Exec(t.Context(), c.req); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&cove.Programs{Names: c.names, Offline: true}, p.last); diff != "" {
			t.Errorf("%+v: %s", c.req, diff)
		}
	}
}

// TestPolicyRefusesVariablesAndVolumes: a session cannot be opened with what would have the names on
// the list of its policy stand for other programs.
func TestPolicyRefusesVariablesAndVolumes(t *testing.T) {
	p := newWorld(t).open(func(c *engine.Config) {
		c.Policy, _ = policy.New(policy.Config{Profiles: []policy.Profile{{Name: "careful", Allow: []string{"git"}, Helpers: []string{"/opt/git/core"}}}})
		c.Policies = []string{"careful"}
	}).As(boss)
	for field, spec := range map[string]cove.Spec{
		"env": {Env: map[string]string{"LD_PRELOAD": "/workspace/x.so"}}, "env ": {Env: map[string]string{"PATH": "/data:/bin"}},
		"volumes": {Volumes: []cove.Volume{{Name: "data", Target: "/opt/git"}}}, "volumes ": {Volumes: []cove.Volume{{Name: "data", Target: "/opt/git/core/more"}}},
	} {
		spec.Policy = "careful"
		_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: spec})
		wantCode(t, err, cove.Invalid, "")
		if e, ok := errors.AsType[*cove.Error](err); !ok || e.Details["field"] != strings.TrimSpace(field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	mustOpen(t, p, cove.Spec{Policy: "careful", Env: map[string]string{"LANG": "C"}})
}

// TestPolicyRefusesDataRuns: no question to data starts Cove's own programs in a
// session whose command policy does not list them.
func TestPolicyRefusesDataRuns(t *testing.T) {
	r := saver{code: "top = 1", got: make(chan *cove.CodeResult, 1)}
	p := openEngine(t, func(c *engine.Config) {
		c.Policy, _ = policy.New(policy.Config{})
		c.Policies, c.Runners = c.Policy.(*policy.Policy).Profiles(), map[string]cove.Runner{"": r}
	}).As(boss)
	s := mustOpen(t, p, cove.Spec{Policy: "agent-bash"})
	run, err := p.Runs().Submit(t.Context(), cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 1", Session: s.ID, SaveAs: "top"})
	if err != nil {
		t.Fatal(err)
	}
	run, err = p.Runs().Wait(t.Context(), run.ID)
	if err != nil || run.State != cove.RunFailed || run.Answer == nil || run.Answer.Error == nil || !strings.Contains(run.Answer.Error.Message, "the session has a command policy") {
		t.Errorf("got %+v, %v", run, err)
	}
}
