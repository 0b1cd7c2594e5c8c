package engine_test

import (
	"context"
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

// TestUnlistedProgramsUntilAPersonAgrees: a program that somebody agreed to is on the list
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
