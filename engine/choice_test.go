package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

// second adds another provider, with a name of its own.
func second(t *testing.T, cfg fake.Config) func(*engine.Config) {
	t.Helper()
	cfg.Dir = t.TempDir()
	p, err := fake.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return func(c *engine.Config) { c.Providers = append(c.Providers, p) }
}

func TestFallbackOnlyWhenWritten(t *testing.T) {
	w := newWorld(t, func(c *fake.Config) { c.Unready = "it is asleep" })
	other := second(t, fake.Config{Name: "other"})
	p := w.open(other).As(boss)
	_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
	wantCode(t, err, cove.Unavailable, "")
	if !strings.Contains(cove.MessageOf(err), "it is asleep") {
		t.Errorf("the message is %q", cove.MessageOf(err))
	}
}

func TestFallbackWhenWrittenIsSaid(t *testing.T) {
	w := newWorld(t, func(c *fake.Config) { c.Unready = "it is asleep" })
	p := w.open(second(t, fake.Config{Name: "other"}), func(c *engine.Config) { c.Fallback = []string{"other"} }).As(boss)
	if s := mustOpen(t, p, cove.Spec{}); s.Provider != "other" {
		t.Errorf("served by %q", s.Provider)
	}
	_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Provider: "fake"}})
	wantCode(t, err, cove.Unavailable, "") // who names a provider gets that one or none
}

func TestAFloorThatDoesNotHoldIsNoReasonToFallBack(t *testing.T) {
	soft := cove.Isolation{Boundary: cove.BoundaryNone, Memory: cove.Soft}
	w := newWorld(t, func(c *fake.Config) { c.Isolation = soft })
	p := w.open(second(t, fake.Config{Name: "other"}), func(c *engine.Config) { c.Fallback = []string{"other"} }).As(boss)
	_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Resources: cove.Resources{Memory: cove.GiB}}})
	wantCode(t, err, cove.Unsupported, cove.ReasonLimitNotEnforced)
	s := mustOpen(t, p, cove.Spec{}) // nobody asked: applied as far as it goes, and said
	if s.Isolation.Memory != cove.Soft || s.Provider != "fake" {
		t.Errorf("%+v", s.Isolation)
	}
	_, err = p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Require: cove.Require{Isolation: cove.BoundaryMicroVM}}})
	wantCode(t, err, cove.Unsupported, "")
}

func TestRequestBeatsKeyBeatsSettingsBeatsFlavor(t *testing.T) {
	w := newWorld(t)
	e := w.open(func(c *engine.Config) {
		c.Flavors = map[string]cove.Resources{"small": {CPUs: 1, Memory: cove.GiB, PIDs: 10}, "big": {CPUs: 8, Memory: 8 * cove.GiB, PIDs: 80}}
		c.Defaults = cove.Spec{Resources: cove.Resources{CPUs: 2}, Env: map[string]string{"A": "settings", "B": "settings"}}
	})
	key := boss
	key.Defaults = cove.Spec{Flavor: "big", Env: map[string]string{"A": "key", "C": "key"}}
	s := mustOpen(t, e.As(key), cove.Spec{Env: map[string]string{"C": "request"}, Resources: cove.Resources{PIDs: 7}})
	if got, want := s.Spec.Resources, (cove.Resources{CPUs: 2, Memory: 8 * cove.GiB, PIDs: 7}); got != want {
		t.Errorf("the resources are %+v, want %+v", got, want)
	}
	if got := sh(t, e.As(key), s.ID, `echo $A $B $C`); got != "key settings request\n" {
		t.Errorf("the environment is %q", got)
	}
	if got := s.Spec.Floors; len(got) != 1 || got[0] != cove.LimitPIDs {
		t.Errorf("the floors are %v, want what the request set", got)
	}
}

func TestWrongSettingsStopTheStart(t *testing.T) {
	for name, change := range map[string]func(*engine.Config){
		"SANDBOX_PROVIDER":   func(c *engine.Config) { c.Provider = "cloud" },
		"MSB_DEFAULT_FLAVOR": func(c *engine.Config) { c.Defaults.Flavor = "huge" },
		"timeout_minutes":    func(c *engine.Config) { c.Defaults.Idle = -1 },
	} {
		_, err := newWorld(t).tryOpen(change)
		wantCode(t, err, cove.Invalid, "")
		if e, ok := errors.AsType[*cove.Error](err); !ok || e.Details["field"] != name {
			t.Errorf("the error is %v, want %s named", err, name)
		}
	}
}

// asking wants a person to agree to every program.
type asking struct{ cove.Policy }

func (a asking) Decide(x cove.Action) cove.Decision {
	d := a.Policy.Decide(x)
	if x.Verb == cove.ProcessExec && d.Effect == cove.Allow {
		return cove.Decision{Effect: cove.Ask, Layer: cove.Content, Refusal: &cove.Refusal{Rule: "ask", Reason: "a person must agree"}}
	}
	return d
}

func TestAskAsksAPerson(t *testing.T) {
	for name, tt := range map[string]struct {
		approve func(context.Context, cove.Action, cove.Decision) (bool, error)
		ran     bool
		reason  string
	}{
		"nobody to ask": {nil, false, cove.ReasonApproval},
		"yes":           {func(context.Context, cove.Action, cove.Decision) (bool, error) { return true, nil }, true, ""},
		"error":         {func(context.Context, cove.Action, cove.Decision) (bool, error) { return true, errInjected }, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newWorld(t).open(func(c *engine.Config) { c.Policy, c.Approve = asking{c.Policy}, tt.approve }).As(boss)
			s := mustOpen(t, p, cove.Spec{})
			x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "echo ran"})
			switch {
			case tt.ran:
				if err != nil || string(x.Stdout.Data) != "ran\n" {
					t.Errorf("%+v, %v", x, err)
				}
			case tt.reason != "":
				wantCode(t, err, cove.Denied, tt.reason)
			default:
				if err != nil || x.Outcome != cove.Blocked {
					t.Errorf("%+v, %v: a person who says no blocks the program", x, err)
				}
			}
		})
	}
}

func TestVolumesStayBelowTheList(t *testing.T) {
	dir := t.TempDir()
	allowed, evil := filepath.Join(dir, "allowed"), filepath.Join(dir, "allowed-evil")
	for _, d := range []string{filepath.Join(allowed, "sub"), evil} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(allowed, "link")
	if err := os.Symlink(evil, link); err != nil {
		t.Fatal(err)
	}
	p := newWorld(t).open(func(c *engine.Config) { c.Volumes = []string{filepath.Join(dir, "gone"), allowed} }).As(boss)
	for source, ok := range map[string]bool{
		allowed: true, filepath.Join(allowed, "sub"): true,
		evil: false, link: false, dir: false, "/": false, filepath.Join(allowed, "missing"): false, "/etc": false,
	} {
		_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Volumes: []cove.Volume{{Source: source, Target: "/data"}}}})
		if ok && err != nil {
			t.Errorf("%s: %v", source, err)
		}
		if !ok {
			wantCode(t, err, cove.Invalid, "")
		}
	}
}

// What is private to the host is shown to nobody, whatever the list says.
func TestVolumesHoldNothingPrivate(t *testing.T) {
	dir := t.TempDir()
	home, other := filepath.Join(dir, "home"), filepath.Join(dir, "other")
	for _, d := range []string{filepath.Join(home, "keys"), other} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	alias := filepath.Join(dir, "alias")
	if err := os.Symlink(home, alias); err != nil {
		t.Fatal(err)
	}
	p := newWorld(t).open(func(c *engine.Config) { c.Volumes, c.Private = []string{dir}, []string{alias} }).As(boss)
	for source, ok := range map[string]bool{other: true, dir: false, home: false, alias: false, filepath.Join(home, "keys"): false} {
		_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Volumes: []cove.Volume{{Source: source, Target: "/data"}}}})
		if ok != (err == nil) {
			t.Errorf("%s: %v", source, err)
		}
	}
	w := newWorld(t).open(func(c *engine.Config) {
		c.Shared, c.Private = []cove.Volume{{Source: dir, Target: "/shared"}}, []string{home}
	}).As(boss)
	_, err := w.Sessions().Open(t.Context(), cove.OpenRequest{})
	wantCode(t, err, cove.Unavailable, "")
}

func TestKeyAndTenantBounds(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	key := boss
	key.Limits.Sessions = 1
	s := mustOpen(t, e.As(key), cove.Spec{})
	_, err := e.As(key).Sessions().Open(t.Context(), cove.OpenRequest{})
	wantCode(t, err, cove.Exhausted, cove.ReasonKeyQuota)

	p := e.As(boss)
	if err := p.Admin().SetTenant(t.Context(), cove.Tenant{Name: cove.DefaultTenant, Quota: cove.Bounds{CPUSeconds: 1e-12}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.AddUsage(t.Context(), cove.DefaultTenant, cove.Consumption{CPU: 1}); err != nil {
		t.Fatal(err)
	}
	again := w // a restart reads what was used
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = again.open().As(boss)
	_, err = p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"})
	wantCode(t, err, cove.Exhausted, cove.ReasonTenantQuota)
	_, err = p.Sessions().Open(t.Context(), cove.OpenRequest{})
	wantCode(t, err, cove.Exhausted, cove.ReasonTenantQuota)
	_, err = p.Runs().Submit(t.Context(), cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 1"})
	wantCode(t, err, cove.Exhausted, cove.ReasonTenantQuota)
}

func TestWhatAProviderLacksIsSaid(t *testing.T) {
	w := newWorld(t, func(c *fake.Config) { c.Powers = []cove.Power{} })
	p := w.open(func(c *engine.Config) { c.Kernels, c.Runners = nil, nil }).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	_, pause := p.Snapshots().Pause(t.Context(), s.ID)
	_, snap := p.Snapshots().Snapshot(t.Context(), s.ID, cove.SnapshotRequest{Name: "x"})
	_, fork := p.Snapshots().Fork(t.Context(), s.ID, cove.ForkRequest{})
	_, dial := p.Ports(s.ID).Dial(t.Context(), 80)
	_, keep := p.Sessions().Close(t.Context(), s.ID, true)
	_, code := p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "calc", Code: "1"})
	_, run := p.Runs().Submit(t.Context(), cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 1"})
	for name, err := range map[string]error{"pause": pause, "snapshot": snap, "fork": fork, "dial": dial, "keep": keep, "code": code, "run": run} {
		if cove.CodeOf(err) != cove.Unsupported {
			t.Errorf("%s gives %v", name, err)
		}
	}
	sh(t, p, s.ID, "true") // a close that could not keep the files did not happen
}

// TestIsolationOfACaller: what is said to stand around a sandbox is what the caller
// would get.
func TestIsolationOfACaller(t *testing.T) {
	e := openEngine(t)
	if i, err := e.Isolation(t.Context(), boss); err != nil || i.Boundary == "" {
		t.Errorf("%+v, %v", i, err)
	}
	other := boss
	other.Defaults.Provider = "none"
	if i, err := e.Isolation(t.Context(), other); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("%+v, %v", i, err)
	}
}
