package measure_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/measure"
	"github.com/cove-sandbox/cove/provider/fake"
)

func pretend(t *testing.T) *fake.Provider {
	t.Helper()
	p, err := fake.New(fake.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func open(t *testing.T, p cove.Provider) *measure.Stage {
	t.Helper()
	s, err := measure.Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func sandboxes(t *testing.T, p cove.Provider) int {
	t.Helper()
	n := 0
	for _, err := range p.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// TestRun proves that everything is measured and nothing is left; the numbers
// are not looked at.
func TestRun(t *testing.T) {
	p := pretend(t)
	s := open(t, p)
	r, err := s.Run(t.Context(), measure.Config{Rounds: 5, Sessions: 3, Workers: 4, Others: []measure.Contender{measure.Command("another", nil, "/bin/sh", "-c", ":")}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{measure.KeyHost, measure.KeyLive, measure.KeyPooled, measure.KeyCold, measure.KeyBwrap, "another"}
	if _, err := measure.Bwrap(t.Context()); err != nil {
		want = slices.DeleteFunc(want, func(key string) bool { return key == measure.KeyBwrap })
	}
	var got []string
	for _, m := range r.Timings {
		got = append(got, m.Key)
		if m.Name == "" || m.Median <= 0 || m.P95 < m.Median || m.OverHost <= 0 {
			t.Errorf("%+v lacks something", m)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if host, ok := r.Of(measure.KeyHost); !ok || host.OverHost != 1 {
		t.Errorf("the host is %v times itself", host.OverHost)
	}
	if _, ok := r.Of("nobody"); ok {
		t.Error("there is a timing of nobody")
	}
	if len(r.Crowds) != 2 || r.Crowds[0].Sessions != 1 || r.Crowds[1].Sessions != 4 {
		t.Errorf("%+v", r.Crowds)
	}
	for _, c := range r.Crowds {
		if c.Workers != 4 || c.Inside <= 0 || c.Host <= 0 || c.OverHost <= 0 {
			t.Errorf("%+v lacks something", c)
		}
	}
	if r.Provider != "fake" || r.Rounds != 5 || r.Machine.Cores < 1 || r.Machine.OS == "" || r.Memory == nil || r.Memory.Sessions != 3 {
		t.Errorf("%+v lacks something", r)
	}
	if n := sandboxes(t, p); n != 1 {
		t.Errorf("%d sandboxes, want the live one", n)
	}
}

func TestChurnLeavesNothing(t *testing.T) {
	p := pretend(t)
	s := open(t, p)
	each, left, err := s.Churn(t.Context(), 20)
	if err != nil || each <= 0 || left.Surplus() != 0 {
		t.Errorf("%s each, left %+v, %v", each, left, err)
	}
	if n := sandboxes(t, p); n != 1 {
		t.Errorf("%d sandboxes, want the live one", n)
	}
}

// heavy is a provider whose sandboxes each keep a process of the host.
type heavy struct{ *fake.Provider }

func (p heavy) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	box, err := p.Provider.Create(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "cat")
	cmd.Stdin = r
	return &heavyBox{Sandbox: box, cmd: cmd, keep: w}, cmd.Start()
}

type heavyBox struct {
	cove.Sandbox

	cmd  *exec.Cmd
	keep *os.File
}

func (b *heavyBox) Destroy(ctx context.Context) error {
	b.keep.Close()
	return errors.Join(b.cmd.Wait(), b.Sandbox.Destroy(ctx))
}

func TestIdleCountsTheProcessesOfSandboxes(t *testing.T) {
	s := open(t, heavy{pretend(t)})
	if g := s.Groups(); len(g) != 0 {
		t.Errorf("its processes are in our own groups, and not in %v", g)
	}
	m, err := s.Idle(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if m.Sessions != 3 || m.Processes != 1 || m.Private <= 0 || m.ProviderProcesses != 0 {
		t.Errorf("%+v", m)
	}
}

// faulty is a provider in which one thing goes wrong.
type faulty struct {
	*fake.Provider

	caps   func(*cove.Capabilities)
	probe  error
	create int // which Create fails, from 1 on
	start  int // the sandbox of which Create runs nothing well
	made   int
}

func (p *faulty) Probe(ctx context.Context) (cove.Capabilities, error) {
	caps, err := p.Provider.Probe(ctx)
	if p.caps != nil {
		p.caps(&caps)
	}
	return caps, errors.Join(err, p.probe)
}

var errBroken = errors.New("broken")

func (p *faulty) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if p.made++; p.made == p.create {
		return nil, errBroken
	}
	box, err := p.Provider.Create(ctx, id, spec)
	if p.made == p.start {
		return badBox{box}, err
	}
	return box, err
}

// badBox is a sandbox in which every program fails.
type badBox struct{ cove.Sandbox }

func (b badBox) Start(ctx context.Context, _ cove.Command) (cove.Process, error) {
	return b.Sandbox.Start(ctx, cove.Command{Argv: []string{"false"}})
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		provider faulty
		want     error
	}{
		"cannot be probed":    {faulty{probe: errBroken}, cove.Unavailable},
		"not ready":           {faulty{caps: func(c *cove.Capabilities) { c.Ready, c.Why = false, "tired" }}, cove.Unavailable},
		"no network none":     {faulty{caps: func(c *cove.Capabilities) { c.Networks = nil }}, cove.Unsupported},
		"first create fails":  {faulty{create: 1}, errBroken},
		"second create fails": {faulty{create: 2}, errBroken},
		"first true fails":    {faulty{start: 1}, nil},
		"second true fails":   {faulty{start: 2}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tc.provider.Provider = pretend(t)
			_, err := measure.Open(t.Context(), &tc.provider)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("the error is %v", err)
			}
			if n := sandboxes(t, tc.provider.Provider); n != 0 {
				t.Errorf("%d sandboxes are left", n)
			}
		})
	}
}

func TestErrorsLeaveOnlyTheLiveSandbox(t *testing.T) {
	for name, run := range map[string]func(s *measure.Stage) error{
		"run":   func(s *measure.Stage) error { _, err := s.Run(t.Context(), measure.Config{Rounds: 1}); return err },
		"idle":  func(s *measure.Stage) error { _, err := s.Idle(t.Context(), 4); return err },
		"churn": func(s *measure.Stage) error { _, _, err := s.Churn(t.Context(), 4); return err },
	} {
		for at := 3; at <= 5; at++ {
			t.Run(fmt.Sprint(name, at), func(t *testing.T) {
				p := &faulty{Provider: pretend(t), create: at}
				s := open(t, p)
				if err := run(s); !errors.Is(err, errBroken) {
					t.Errorf("the error is %v", err)
				}
				if n := sandboxes(t, p.Provider); n != 1 {
					t.Errorf("%d sandboxes, want the live one", n)
				}
			})
		}
	}
}

func TestPooledNeedsThePower(t *testing.T) {
	p := &faulty{Provider: pretend(t), caps: func(c *cove.Capabilities) { c.Powers, c.Templates = nil, []string{c.Templates[0]} }}
	if _, ok := open(t, p).Pooled(); ok {
		t.Error("a provider without the power to prepare has a pool")
	}
}
