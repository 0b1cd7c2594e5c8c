package platformtest

import (
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func validationCases() []testCase {
	return []testCase{
		{"open", badOpens},
		{"exec", badExecs},
		{"keys", badKeys},
		{"tenants", badTenants},
	}
}

// badOpens: every bad request names its field, and none leaves anything.
func badOpens(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	for _, c := range openTable() {
		t.Run(c.name, func(t *testing.T) {
			_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: c.spec})
			wantField(t, err, cove.Invalid, c.field)
			if msg := cove.MessageOf(err); !strings.HasPrefix(msg, c.field+":") || len(msg) > 2000 {
				t.Errorf("the message does not start with the field: %.200q", msg)
			}
		})
	}
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{OnFull: "maybe"})
	wantField(t, err, cove.Invalid, "on_full")
	_, err = p.Sessions().Open(r.ctx, cove.OpenRequest{IdempotencyKey: strings.Repeat("k", 1000)})
	wantField(t, err, cove.Invalid, "Idempotency-Key")
	if list := all(r, p.Sessions().List(r.ctx, cove.SessionFilter{})); len(list) > 0 {
		t.Errorf("bad requests left %v", ids(list))
	}
	r.session(p, cove.Spec{})
}

type badSpec struct {
	name, field string
	spec        cove.Spec
}

func openTable() []badSpec {
	var many []int
	for n := range 300 {
		many = append(many, n+1)
	}
	return []badSpec{
		{"unknown provider", "provider", cove.Spec{Provider: "no-such-provider"}},
		{"unknown template", "template", cove.Spec{Template: "no-such-template"}},
		{"unknown flavor", "flavor", cove.Spec{Flavor: "gigantic"}},
		{"unknown policy", "policy", cove.Spec{Policy: "no-such-policy"}},
		{"policy as a path", "policy", cove.Spec{Policy: "../../etc/passwd"}},
		{"unknown network mode", "network.mode", cove.Spec{Network: cove.Network{Mode: "wide"}}},
		{"hosts without the mode", "network.allow", cove.Spec{Network: cove.Network{Mode: cove.NetworkNone, Allow: []string{"a.com"}}}},
		{"mode without hosts", "network.allow", cove.Spec{Network: cove.Network{Mode: cove.NetworkAllow}}},
		{"bad host", "network.allow", cove.Spec{Network: cove.Network{Mode: cove.NetworkAllow, Allow: []string{"http://a.com/"}}}},
		{"unknown workspace", "workspace.kind", cove.Spec{Workspace: cove.Workspace{Kind: "cloud"}}},
		{"unknown isolation", "require.isolation", cove.Spec{Require: cove.Require{Isolation: "total"}}},
		{"negative idle", "timeout_minutes", cove.Spec{Idle: -time.Minute}},
		{"negative lifetime", "lifetime_minutes", cove.Spec{Lifetime: -time.Minute}},
		{"endless idle", "timeout_minutes", cove.Spec{Idle: 10000 * time.Hour}},
		{"negative memory", "memory_limit", cove.Spec{Resources: cove.Resources{Memory: -cove.MiB}}},
		{"a byte of memory", "memory_limit", cove.Spec{Resources: cove.Resources{Memory: 1}}},
		{"negative cpus", "cpu_limit", cove.Spec{Resources: cove.Resources{CPUs: -1}}},
		{"negative pids", "pids_limit", cove.Spec{Resources: cove.Resources{PIDs: -1}}},
		{"negative size", "workspace.size_mb", cove.Spec{Workspace: cove.Workspace{Size: -cove.MiB}}},
		{"negative files", "workspace.files", cove.Spec{Workspace: cove.Workspace{Files: -1}}},
		{"bad port", "ports", cove.Spec{Ports: []int{70000}}},
		{"many ports", "ports", cove.Spec{Ports: many}},
		{"bad env name", "env", cove.Spec{Env: map[string]string{"A-B": "x"}}},
		{"NUL in env", "env.A", cove.Spec{Env: map[string]string{"A": "x\x00y"}}},
		{"oversize env", "env.A", cove.Spec{Env: map[string]string{"A": strings.Repeat("x", 64<<10)}}},
		{"bad metadata name", "metadata", cove.Spec{Metadata: map[string]string{"a=b": "x"}}},
		{"NUL in user", "user_id", cove.Spec{User: "a\x00b"}},
		{"oversize thread", "thread_id", cove.Spec{Thread: strings.Repeat("x", 300)}},
		{"unknown end", "on_end", cove.Spec{OnEnd: "vanish"}},
		{"bad snapshot id", "snapshot", cove.Spec{Snapshot: "../snapshot"}},
	}
}

func badExecs(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	for _, c := range []struct {
		name, field string
		req         cove.ExecRequest
	}{
		{"empty", "command", cove.ExecRequest{}},
		{"line and argv", "command", cove.ExecRequest{Line: "true", Argv: []string{"true"}}},
		{"no program", "command", cove.ExecRequest{Argv: []string{"", "x"}}},
		{"NUL in a line", "command", cove.ExecRequest{Line: "echo a\x00b"}},
		{"NUL in an argument", "command", cove.ExecRequest{Argv: []string{"echo", "a\x00b"}}},
		{"oversize", "command", cove.ExecRequest{Line: "echo " + strings.Repeat("x", 3<<20)}},
		{"negative timeout", "timeout", cove.ExecRequest{Line: "true", Limits: cove.Limits{Wall: -time.Second}}},
		{"negative output", "max_output", cove.ExecRequest{Line: "true", Limits: cove.Limits{Output: -1}}},
		{"bad env", "env", cove.ExecRequest{Line: "true", Env: map[string]string{"1A": "x"}}},
		{"NUL in the tag", "tag", cove.ExecRequest{Line: "true", Tag: "a\x00b"}},
		{"oversize tag", "tag", cove.ExecRequest{Line: "true", Tag: strings.Repeat("x", 65)}},
		{"NUL in the directory", "workdir", cove.ExecRequest{Line: "true", Dir: "/workspace\x00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := p.Processes(id).Exec(r.ctx, c.req)
			wantField(t, err, cove.Invalid, c.field)
			_, err = p.Processes(id).Start(r.ctx, c.req)
			wantField(t, err, cove.Invalid, c.field)
		})
	}
	_, err := p.Processes(id).Start(r.ctx, cove.ExecRequest{Line: "true", TTY: &cove.WindowSize{}})
	wantField(t, err, cove.Invalid, "tty")
	if list := all(r, p.Processes(id).List(r.ctx)); len(list) > 0 {
		t.Errorf("bad requests left programs: %+v", list)
	}
}

func badKeys(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	read := []cove.Scope{cove.ScopeRead}
	for _, c := range []struct {
		name, field string
		req         cove.KeyRequest
	}{
		{"no scope", "scopes", cove.KeyRequest{Name: "k"}},
		{"unknown scope", "scopes", cove.KeyRequest{Name: "k", Scopes: []cove.Scope{"root"}}},
		{"bad tenant", "tenant", cove.KeyRequest{Name: "k", Tenant: "../x", Scopes: read}},
		{"negative lifetime", "limits", cove.KeyRequest{Name: "k", Scopes: read, TTL: -time.Hour}},
		{"negative limit", "limits", cove.KeyRequest{Name: "k", Scopes: read, Limits: cove.KeyLimit{Sessions: -1}}},
		{"bad default", "timeout_minutes", cove.KeyRequest{Name: "k", Scopes: read, Defaults: cove.Spec{Idle: -1}}},
		{"unknown form", "form", cove.KeyRequest{Name: "k", Scopes: read, Form: "jwt"}},
		{"namespace of a plain key", "namespace", cove.KeyRequest{Name: "k", Scopes: read, Limits: cove.KeyLimit{Namespace: "*"}}},
		{"bad namespace", "namespace", cove.KeyRequest{Name: "k", Scopes: read, Form: cove.KeyMicrosandbox, Limits: cove.KeyLimit{Namespace: "-x"}}},
		{"long namespace", "namespace", cove.KeyRequest{Name: "k", Scopes: read, Form: cove.KeyMicrosandbox, Limits: cove.KeyLimit{Namespace: strings.Repeat("n", 64)}}},
		{"oversize name", "name", cove.KeyRequest{Name: strings.Repeat("k", 1000), Scopes: read}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, secret, err := r.admin().Admin().CreateKey(r.ctx, c.req)
			wantField(t, err, cove.Invalid, c.field)
			if secret != "" {
				t.Error("a refused request got a secret")
			}
		})
	}
}

func badTenants(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	admin := r.admin().Admin()
	for _, name := range []string{"", "..", "a/b", "-x", strings.Repeat("t", 100), "a b", "a\x00"} {
		wantField(t, admin.SetTenant(r.ctx, cove.Tenant{Name: name}), cove.Invalid, "tenant")
	}
	for _, quota := range []cove.Bounds{{Sessions: -1}, {Memory: -1}, {CPUSeconds: -1}} {
		wantField(t, admin.SetTenant(r.ctx, cove.Tenant{Name: "acme", Quota: quota}), cove.Invalid, "quota")
	}
}
