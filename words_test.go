package cove_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cove-sandbox/cove"
)

func TestIDs(t *testing.T) {
	seen := map[cove.ID]bool{}
	for range 1000 {
		id := cove.NewID()
		if !id.Valid() || seen[id] || strings.ToLower(string(id)) != string(id) {
			t.Fatalf("%q is not a fresh, valid id", id)
		}
		seen[id] = true
	}
	for _, bad := range []cove.ID{"", "x", "../../../../../etc/passwd0", cove.ID(strings.Repeat("u", 26)), cove.ID(strings.Repeat("A", 26))} {
		if bad.Valid() {
			t.Errorf("%q is valid", bad)
		}
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]cove.Bytes{
		"0": 0, "512": 512, "1k": 1024, "512m": 512 * cove.MiB, "1g": cove.GiB, "1.5GiB": 3 * cove.GiB / 2, " 2 TB ": 2 * cove.TiB, "100b": 100,
	} {
		got, err := cove.ParseBytes(text)
		if err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "g", "-1", "1x", "1e400", "0x10", "1_000", "NaN", "inf", "9999999t", "1ib2", "+1", "kib"} {
		if got, err := cove.ParseBytes(bad); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%q is taken as %d", bad, got)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		b := cove.Bytes(rapid.Int64Range(0, 1<<50).Draw(rt, "bytes"))
		if got, err := cove.ParseBytes(b.String()); err != nil || got != b {
			rt.Fatalf("%d is written %q and read %d, %v", int64(b), b, got, err)
		}
	})
}

func TestSignals(t *testing.T) {
	for _, text := range []string{"TERM", "term", "SIGTERM", "15"} {
		if s, err := cove.ParseSignal(text); err != nil || s != "TERM" || s.Number() != 15 {
			t.Errorf("%q is %q, %v", text, s, err)
		}
	}
	for _, bad := range []string{"", "0", "-9", "SIGNAL", "99999999999999999999"} {
		if _, err := cove.ParseSignal(bad); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestLimitsOnlyTighten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		gen := rapid.Custom(func(rt *rapid.T) cove.Limits {
			return cove.Limits{Wall: time.Duration(rapid.IntRange(0, 5).Draw(rt, "wall")), Output: cove.Bytes(rapid.IntRange(0, 5).Draw(rt, "output"))}
		})
		a, b := gen.Draw(rt, "a"), gen.Draw(rt, "b")
		c := a.Tighten(b)
		if c != b.Tighten(a) || c != c.Tighten(a).Tighten(b) {
			rt.Fatalf("the order matters for %v and %v", a, b)
		}
		for _, of := range []cove.Limits{a, b} {
			if of.Wall != 0 && (c.Wall == 0 || c.Wall > of.Wall) || of.Output != 0 && (c.Output == 0 || c.Output > of.Output) {
				rt.Fatalf("%v is looser than %v", c, of)
			}
		}
	})
}

func TestBoundariesAreOrdered(t *testing.T) {
	all := cove.Boundaries()
	for i, a := range all {
		for k, b := range all {
			if a.AtLeast(b) != (i >= k) {
				t.Errorf("%s at least %s is %v", a, b, a.AtLeast(b))
			}
		}
	}
	if cove.Boundary("strong").AtLeast(cove.BoundaryNone) || cove.BoundaryRemote.AtLeast("strong") {
		t.Error("an unknown boundary passes")
	}
}

func readyCaps() cove.Capabilities {
	return cove.Capabilities{
		Ready: true, Templates: []string{"base"}, Networks: []cove.NetworkMode{cove.NetworkNone},
		Isolation:  cove.Isolation{Boundary: cove.BoundaryNamespaces, Memory: cove.Hard, CPU: cove.Soft},
		Workspaces: map[cove.WorkspaceKind]cove.Quota{cove.WorkspaceMemory: {Bytes: cove.Hard, Files: cove.Hard}},
	}
}

func readySpec() cove.Spec {
	return cove.Spec{Template: "base", Network: cove.Network{Mode: cove.NetworkNone}, Workspace: cove.Workspace{Kind: cove.WorkspaceMemory}}
}

func TestCapabilitiesCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		caps func(*cove.Capabilities)
		spec func(*cove.Spec)
		code cove.Code
		says string
	}{
		"fits":          {nil, nil, "", ""},
		"floor held":    {nil, func(s *cove.Spec) { s.Floors = []cove.Limit{cove.LimitMemory, cove.LimitDisk} }, "", ""},
		"not ready":     {func(c *cove.Capabilities) { c.Ready, c.Why = false, "no kernel" }, nil, cove.Unavailable, "no kernel"},
		"workspace":     {nil, func(s *cove.Spec) { s.Workspace.Kind = cove.WorkspaceDisk }, cove.Unsupported, "disk"},
		"network":       {nil, func(s *cove.Spec) { s.Network.Mode = cove.NetworkOpen }, cove.Unsupported, "open"},
		"volumes":       {nil, func(s *cove.Spec) { s.Volumes = []cove.Volume{{}} }, cove.Unsupported, "volumes"},
		"no pause":      {nil, func(s *cove.Spec) { s.OnEnd = cove.EndPause }, cove.Unsupported, "cannot pause"},
		"pause":         {func(c *cove.Capabilities) { c.Powers = []cove.Power{cove.PowerPause} }, func(s *cove.Spec) { s.OnEnd = cove.EndPause }, "", ""},
		"stop":          {nil, func(s *cove.Spec) { s.OnEnd = cove.EndStop }, "", ""},
		"template":      {nil, func(s *cove.Spec) { s.Template = "x" }, cove.Invalid, "it has base"},
		"isolation":     {nil, func(s *cove.Spec) { s.Require.Isolation = cove.BoundaryMicroVM }, cove.Unsupported, "microvm"},
		"soft floor":    {nil, func(s *cove.Spec) { s.Floors = []cove.Limit{cove.LimitCPU} }, cove.Unsupported, "cpu"},
		"missing floor": {nil, func(s *cove.Spec) { s.Floors = []cove.Limit{cove.LimitPIDs} }, cove.Unsupported, `"none"`},
	} {
		caps, spec := readyCaps(), readySpec()
		if tt.caps != nil {
			tt.caps(&caps)
		}
		if tt.spec != nil {
			tt.spec(&spec)
		}
		err := caps.Check("p", spec)
		if cove.CodeOf(err) != tt.code || err != nil && !strings.Contains(cove.MessageOf(err), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
		if build := "cove template build x"; name == "template" && !strings.Contains(cove.RemedyOf(err), build) {
			t.Errorf("%s: the remedy is %q, without %q", name, cove.RemedyOf(err), build)
		}
	}
}

func TestVerbsAndScopes(t *testing.T) {
	for _, v := range cove.Verbs() {
		if !slices.Contains(cove.Scopes(), v.Trait().Scope) {
			t.Errorf("%s needs the unknown scope %q", v, v.Trait().Scope)
		}
		if v.Trait().Reads && v.Trait().Durable {
			t.Errorf("%s reads and waits for the disk", v)
		}
	}
	if tr := cove.Verb("new.thing").Trait(); tr.Scope != cove.ScopeAll || tr.Reads {
		t.Errorf("a verb nobody wrote down has %+v", tr)
	}
	p := cove.Principal{Scopes: []cove.Scope{cove.ScopeExec}}
	if !p.May(cove.ScopeExec) || p.May(cove.ScopeAdmin) || !(cove.Principal{Scopes: []cove.Scope{cove.ScopeAll}}).May(cove.ScopeAdmin) {
		t.Error("scopes do not hold")
	}
}

func TestSecrets(t *testing.T) {
	a, b := cove.NewSecret(), cove.NewSecret()
	if a == b || !strings.HasPrefix(a, "cove_") || len(a) != 37 {
		t.Errorf("%q is not a secret", a)
	}
	if len(cove.HashSecret(a)) != 32 || slices.Equal(cove.HashSecret(a), cove.HashSecret(b)) {
		t.Error("hashes do not tell secrets apart")
	}
}

func TestFilters(t *testing.T) {
	s := &cove.Session{Tenant: "t", State: cove.Running, Spec: cove.Spec{User: "u", Metadata: map[string]string{"a": "b"}}}
	for name, tt := range map[string]struct {
		f    cove.SessionFilter
		want bool
	}{
		"all": {cove.SessionFilter{}, true}, "tenant": {cove.SessionFilter{Tenant: "x"}, false},
		"user": {cove.SessionFilter{User: "u", State: cove.Running}, true}, "state": {cove.SessionFilter{State: cove.Paused}, false},
		"metadata": {cove.SessionFilter{Metadata: map[string]string{"a": "b"}}, true},
		"other":    {cove.SessionFilter{Metadata: map[string]string{"a": "c"}}, false},
	} {
		if tt.f.Match(s) != tt.want {
			t.Errorf("%s gives %v", name, !tt.want)
		}
	}
	ended := &cove.Session{State: cove.Ended}
	if (cove.SessionFilter{}).Match(ended) || !(cove.SessionFilter{State: cove.Ended}).Match(ended) {
		t.Error("an ended session is listed unasked, or not when asked")
	}
	e := &cove.Event{Seq: 5, Kind: "session.open", Tenant: "t"}
	for f, want := range map[cove.EventFilter]bool{
		{}: true, {After: 5}: false, {After: 4, Tenant: "t"}: true, {Kind: "session."}: true, {Kind: "session"}: false,
		{Kind: "session.open"}: true, {Kind: "file."}: false, {Session: "x"}: false,
	} {
		if f.Match(e) != want {
			t.Errorf("%+v gives %v", f, !want)
		}
	}
}

func TestStates(t *testing.T) {
	for _, s := range cove.States() {
		if want := s != cove.Ended && s != cove.Failed; s.Live() != want {
			t.Errorf("%s is live: %v", s, s.Live())
		}
	}
	if len(cove.Outcomes()) != 7 || len(cove.Powers()) != 11 {
		t.Error("an outcome or a power is missing from its list")
	}
	if (cove.Stats{}).ReuseRate() != 0 || (cove.Stats{Opened: 4, Reused: 1}).ReuseRate() != 0.25 {
		t.Error("the reuse rate is wrong")
	}
}

// plain is a sandbox without powers, and wrapped one with a decorator.
type plain struct{ cove.Sandbox }

type pausing struct{ plain }

func (pausing) Pause(context.Context) error  { return nil }
func (pausing) Resume(context.Context) error { return nil }

type wrapped struct{ inner cove.Sandbox }

func (w wrapped) Unwrap() cove.Sandbox { return w.inner }

type wrappedProvider struct{ inner cove.Provider }

func (w wrappedProvider) Unwrap() cove.Provider { return w.inner }

func TestAsWalksDecorators(t *testing.T) {
	if _, ok := cove.As[cove.Pauser](wrapped{pausing{}}); !ok {
		t.Error("a decorated power is not found")
	}
	for _, v := range []any{plain{}, wrapped{plain{}}, wrappedProvider{}, nil} {
		if _, ok := cove.As[cove.Pauser](v); ok {
			t.Errorf("%T pauses", v)
		}
	}
}
