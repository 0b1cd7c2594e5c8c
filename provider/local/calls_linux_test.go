package local_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

func TestConfig(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	_, err := local.New(local.Config{})
	wants(t, cove.Invalid, err, "no directory")
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	_, err = local.New(local.Config{Dir: filepath.Join(file, "dir")})
	wants(t, cove.Unavailable, err, "a directory in a file")
	cfg := config(t.TempDir())
	cfg.Agent = "/no/such/agent"
	unready(t, cfg, "agent")
	cfg.Agent = "/bin/true"
	unready(t, cfg, "sandboxes")
	if os.Getuid() != 0 {
		return
	}
	cfg = config(t.TempDir())
	cfg.Users = filepath.Join(file, "users")
	unready(t, cfg, "users")
	cfg.Users = "/proc" // in which no file can be made
	unready(t, cfg, "users")
}

// unready demands that a provider cannot make sandboxes, and says why.
func unready(t *testing.T, cfg local.Config, why string) {
	t.Helper()
	p, err := local.New(cfg)
	must(t, err)
	defer func() { must(t, p.Close()) }()
	caps, err := p.Probe(t.Context())
	if err != nil || caps.Ready || !strings.Contains(caps.Why, why) {
		t.Errorf("the report says %t %q %q, %v", caps.Ready, caps.Why, caps.Remedy, err)
	}
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{})
	wants(t, cove.Unavailable, err, "create")
	if got := listable(t, p); len(got) != 0 {
		t.Errorf("listed are %v", got)
	}
}

// listable lists what can be listed.
func listable(t *testing.T, p cove.Provider) (all []cove.ID) {
	for id, err := range p.List(t.Context()) {
		if err == nil {
			all = append(all, id)
		}
	}
	return all
}

func TestRefusals(t *testing.T) {
	p := provider(t, config(t.TempDir()))
	s := create(t, p)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		id   cove.ID
		spec cove.Spec
		want cove.Code
	}{
		"no id":       {"x/y", cove.Spec{}, cove.Invalid},
		"taken":       {s.ID(), cove.Spec{}, cove.Conflict},
		"canceled":    {cove.NewID(), cove.Spec{}, cove.Canceled},
		"snapshot":    {cove.NewID(), cove.Spec{Snapshot: cove.NewID()}, cove.NotFound},
		"template":    {cove.NewID(), cove.Spec{Template: "other"}, cove.Invalid},
		"no such net": {cove.NewID(), cove.Spec{Network: cove.Network{Mode: "wide"}}, cove.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if c.want == cove.Canceled {
				ctx = canceled
			}
			_, err := p.Create(ctx, c.id, c.spec)
			wants(t, c.want, err, "create")
		})
	}
	_, err := p.Probe(canceled)
	wants(t, cove.Canceled, err, "probe")
	_, err = p.Attach(canceled, s.ID())
	wants(t, cove.Canceled, err, "attach")
	wants(t, cove.Canceled, p.Remove(canceled, s.ID()), "remove")
	for _, err := range p.List(canceled) {
		wants(t, cove.Canceled, err, "list")
	}
	must(t, p.Remove(t.Context(), "no id"))
	if got, err := p.Attach(t.Context(), s.ID()); err != nil || got != s {
		t.Errorf("attach: %v %v", got, err)
	}
	if got := ids(t, p); !cmp.Equal(got, []cove.ID{s.ID()}) {
		t.Errorf("listed are %v", got)
	}
	must(t, p.Remove(t.Context(), s.ID()))
	if got := ids(t, p); len(got) != 0 {
		t.Errorf("listed are %v", got)
	}
}

func TestSpares(t *testing.T) {
	p := provider(t, config(t.TempDir()))
	mold := cove.Mold{Template: local.Base, Workspace: cove.WorkspaceMemory}
	prepare := func() cove.Spare {
		t.Helper()
		s, err := p.Prepare(t.Context(), mold)
		must(t, err)
		return s
	}
	spare := prepare()
	if got := ids(t, p); len(got) != 0 {
		t.Errorf("a spare is listed: %v", got)
	}
	must(t, p.Remove(t.Context(), local.SpareName(spare)))
	box, err := spare.Claim(t.Context(), cove.NewID(), cove.Spec{})
	must(t, err)
	says(t, box) // removing it by the name of its groups did nothing
	must(t, p.Remove(t.Context(), local.SpareName(spare)))
	says(t, box)
	_, err = spare.Claim(t.Context(), cove.NewID(), cove.Spec{})
	wants(t, cove.Conflict, err, "claim again")
	must(t, spare.Discard(t.Context()))
	_, err = prepare().Claim(t.Context(), box.ID(), cove.Spec{})
	wants(t, cove.Conflict, err, "claim for an id that is taken")
	_, err = prepare().Claim(t.Context(), cove.NewID(), cove.Spec{Template: "other"})
	wants(t, cove.Invalid, err, "claim for another template")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = prepare().Claim(canceled, cove.NewID(), cove.Spec{})
	wants(t, cove.Canceled, err, "claim by nobody")
	_, err = p.Prepare(canceled, mold)
	wants(t, cove.Canceled, err, "prepare")
	_, err = p.Prepare(t.Context(), cove.Mold{Template: "other", Workspace: cove.WorkspaceMemory})
	wants(t, cove.Invalid, err, "prepare")
	dead := prepare()
	must(t, unix.Kill(local.SparePID(dead), unix.SIGKILL))
	<-local.SpareDone(dead)
	other, err := dead.Claim(t.Context(), cove.NewID(), cove.Spec{})
	must(t, err)
	says(t, other) // another one was made
	must(t, other.Destroy(t.Context()))
	kept := prepare()
	must(t, kept.Discard(canceled))
	prepare() // the end of the provider is its end, too
	if got := ids(t, p); !cmp.Equal(got, []cove.ID{box.ID()}) {
		t.Errorf("listed are %v", got)
	}
}

func TestNoProc(t *testing.T) {
	p := provider(t, config(t.TempDir()))
	says(t, create(t, p))
	if again, proc := local.GiveUpProc(p, errors.New("mount /tmp")); again || !proc {
		t.Errorf("another refusal: %t, /proc %t", again, proc)
	}
	refused := &fence.Fault{Step: "mount /proc: operation not permitted", Errno: unix.EPERM}
	for range 2 { // the second one may come from an order that was under way
		if again, proc := local.GiveUpProc(p, refused); !again || proc {
			t.Errorf("a refusal: %t, /proc %t", again, proc)
		}
	}
	s := create(t, p)
	says(t, s)
	var out bytes.Buffer
	program, err := s.Start(t.Context(), cove.Command{Argv: []string{"ls", "-A", "/proc"}, Stdout: &out})
	must(t, err)
	if _, err := program.Wait(t.Context()); err != nil || out.Len() != 0 {
		t.Errorf("/proc has %q, %v", out.String(), err)
	}
	// Nobody can be looked for, and still nobody outlives a time limit.
	const line = `setsid sh -c 'while :; do date +%N > new; mv new beat; sleep 0.02; done' & sleep 1000`
	program, err = s.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", line}, Limits: cove.Limits{Wall: 500 * time.Millisecond}})
	must(t, err)
	if r, err := program.Wait(t.Context()); err != nil || r.Outcome != cove.TimedOut {
		t.Errorf("the end is %+v, %v", r, err)
	}
	beats := func() string {
		t.Helper()
		var out bytes.Buffer
		program, err := s.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", "cat beat; sleep 0.3; cat beat"}, Stdout: &out})
		must(t, err)
		_, err = program.Wait(t.Context())
		must(t, err)
		return out.String()
	}
	if first, second, ok := strings.Cut(beats(), "\n"); !ok || first+"\n" != second {
		t.Errorf("a child in a session of its own goes on: %q, %q", first, second)
	}
}

func TestExplain(t *testing.T) {
	p := provider(t, config(t.TempDir()))
	for name, c := range map[string]struct {
		err  error
		want cove.Code
	}{
		"full":     {&fence.Fault{Step: "clone", Errno: unix.ENOSPC}, cove.Exhausted},
		"canceled": {context.Canceled, cove.Canceled},
		"late":     {context.DeadlineExceeded, cove.Timeout},
		"refused":  {&fence.Fault{Step: "mount", Errno: unix.EPERM}, cove.Unavailable},
		"known":    {cove.Errorf(cove.Internal, "known"), cove.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			err := local.Explain(p, c.err)
			wants(t, c.want, err, "it")
			if (c.want == cove.Exhausted || c.want == cove.Unavailable) && cove.RemedyOf(err) == "" {
				t.Errorf("%v has no remedy", err)
			}
		})
	}
	err := local.Joined(cove.Errorf(cove.Conflict, "first"), errors.New("second"))
	if wants(t, cove.Conflict, err, "two"); cove.MessageOf(err) != "first" {
		t.Errorf("it says %q", cove.MessageOf(err))
	}
}

func TestEnvironment(t *testing.T) {
	env := local.Environment(map[string]string{"A": "b", "USER": "me"}, map[string]string{"A": "c", "T": "t"}, []string{"/opt/py/bin", "/opt/js/bin"})
	if env["A"] != "b" || env["T"] != "t" || env["USER"] != "me" || env["HOME"] != cove.WorkspacePath || !strings.HasSuffix(env["PATH"], ":/bin:/opt/py/bin:/opt/js/bin") {
		t.Errorf("the environment is %v", env)
	}
}

// TestNotAnAgent: an executable that does not know what it was started for must
// not start itself.
func TestNotAnAgent(t *testing.T) {
	defer local.NotAnAgent()()
	unready(t, config(t.TempDir()), "agent")
}
