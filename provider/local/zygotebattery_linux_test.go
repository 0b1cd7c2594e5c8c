package local_test

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

// TestForkedInterpretersHold makes attacks by programs that forked interpreters
// become.
func TestForkedInterpretersHold(t *testing.T) {
	linuxtest.NeedRoot(t)
	p := openNest(t)
	// What bounds a single program is the business of who starts it, here of a test.
	byStart := []string{"survivors_timeout", "busy_loop", "ignored_signals", "stopped", "output_flood"}
	held, nest := 0, &nestProvider{Provider: p, t: t}
	for f, err := range escape.Run(t.Context(), nest, escape.Options{Via: []escape.Via{escape.Exec}}) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case slices.Contains(byStart, f.Attack):
		case f.GotThrough():
			t.Errorf("this got through: %s: %s: %s", f.Attack, f.Try, f.Detail)
		case f.Skipped == "":
			held++
		}
	}
	if became := nest.became.Load(); held < 40 || became < 50 {
		t.Errorf("only %d attacks were made, by %d programs that were interpreters", held, became)
	}
}

// nestProvider makes sandboxes whose first programs are forked interpreters that
// become them.
type nestProvider struct {
	cove.Provider

	t      *testing.T
	became atomic.Int64 // how many programs were interpreters before
}

func (p *nestProvider) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if len(spec.Volumes) > 0 || spec.Snapshot != "" || spec.Workspace.Kind == cove.WorkspaceDisk {
		return p.Provider.Create(ctx, id, spec)
	}
	spec.Template = "data"
	s := nestSpare(p.t, p.Provider)
	var ready []*planted
	stubs := 64 // most attacks are in one sandbox
	if spec.Resources.PIDs > 0 || spec.Resources.Memory > 0 {
		stubs = 4
	}
	for range stubs {
		one, err := plantIn(ctx, s, spec.Resources, `import json, os, sys
o = json.loads(sys.stdin.buffer.raw.readline())
os.chdir(o["dir"] or "/workspace")
n = os.open("/dev/null", os.O_RDONLY)
os.dup2(n, 0)
os.environ.update(o["env"])
os.execvp(o["argv"][0], o["argv"])`)
		if err != nil {
			return nil, err
		}
		one.late = time.AfterFunc(time.Hour, func() { _ = one.Kill(context.Background()) })
		p.t.Cleanup(func() { one.late.Stop() })
		ready = append(ready, one)
	}
	box, err := s.Claim(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	return &nestBox{Sandbox: box, p: p, env: spec.Env, ready: ready}, nil
}

// nestBox starts its programs by having an interpreter become them.
type nestBox struct {
	cove.Sandbox

	p   *nestProvider
	env map[string]string

	mu    sync.Mutex
	ready []*planted
}

func (b *nestBox) Unwrap() cove.Sandbox { return b.Sandbox }

func (b *nestBox) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ready) == 0 || cmd.TTY != nil || cmd.Stdin != nil {
		return b.Sandbox.Start(ctx, cmd)
	}
	b.p.became.Add(1)
	p := b.ready[0]
	b.ready = b.ready[1:]
	env := map[string]string{}
	maps.Copy(env, b.env)
	maps.Copy(env, cmd.Env)
	text, err := json.Marshal(map[string]any{"argv": cmd.Argv, "dir": cmd.Dir, "env": env})
	if err != nil {
		return nil, err
	}
	p.out.lead(cmd.Stdout)
	p.err.lead(cmd.Stderr)
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		return nil, err
	}
	p.late.Reset(cmp.Or(cmd.Limits.Wall, time.Hour))
	return p, nil
}
