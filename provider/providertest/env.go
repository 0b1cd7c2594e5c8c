package providertest

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// Bounds on waiting. Patience is for what must happen; moment is for what must
// not, and only makes a case that passes take that long.
const (
	patience = 2 * time.Minute
	moment   = 150 * time.Millisecond
)

// env is what a case works with.
type env struct {
	*testing.T

	open func(*testing.T) cove.Provider
	p    cove.Provider
	caps cove.Capabilities
}

// ctx is a context for one call, with a generous deadline.
func (e *env) ctx() context.Context {
	ctx, cancel := context.WithTimeout(e.Context(), patience)
	e.Cleanup(cancel)
	return ctx
}

// last is a context for cleaning up, when the test's own has ended.
func (e *env) last() context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.Context()), patience)
	e.Cleanup(cancel)
	return ctx
}

// needs skips the case where a capability is missing. Nothing else skips.
func (e *env) needs(capability string, ok bool) {
	e.Helper()
	if !ok {
		e.Skipf("provider %s lacks what this case is about: %s", e.p.Name(), capability)
	}
}

func (e *env) needsPower(p cove.Power) {
	e.Helper()
	e.needs("the power "+string(p), slices.Contains(e.caps.Powers, p))
}

func (e *env) needsHard(l cove.Limit) {
	e.Helper()
	e.needs("a hard limit on "+string(l), e.caps.For(e.spec().Workspace.Kind).Of(l) == cove.Hard)
}

// must stops the case at an error; check goes on.
func (e *env) must(err error, what string) {
	e.Helper()
	if err != nil {
		e.Fatalf("%s: %v", what, err)
	}
}

func (e *env) check(err error, what string) {
	e.Helper()
	if err != nil {
		e.Errorf("%s: %v", what, err)
	}
}

// wants demands an error with a code.
func (e *env) wants(code cove.Code, err error, what string) {
	e.Helper()
	if cove.CodeOf(err) != code {
		e.Errorf("%s gives %v; want an error with code %s", what, err, code)
	}
}

// wantsReason demands an error with a code and a reason under it.
func (e *env) wantsReason(code cove.Code, reason string, err error, what string) {
	e.Helper()
	e.wants(code, err, what)
	if got := cove.ReasonOf(err); got != reason {
		e.Errorf("%s gives reason %q; want %q", what, got, reason)
	}
}

// spec is a resolved spec with what the provider offers first.
func (e *env) spec(changes ...func(*cove.Spec)) cove.Spec {
	s := cove.Spec{Template: e.caps.Templates[0]}
	s.Workspace.Kind = cove.WorkspaceMemory
	if _, ok := e.caps.Workspaces[cove.WorkspaceMemory]; !ok {
		s.Workspace.Kind = cove.WorkspaceDisk
	}
	s.Network.Mode = e.caps.Networks[0]
	if slices.Contains(e.caps.Networks, cove.NetworkNone) {
		s.Network.Mode = cove.NetworkNone
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// sandbox makes a sandbox that is destroyed with the case.
func (e *env) sandbox(changes ...func(*cove.Spec)) cove.Sandbox {
	e.Helper()
	s, err := e.p.Create(e.ctx(), cove.NewID(), e.spec(changes...))
	e.must(err, "create")
	e.destroyLater(s)
	return s
}

func (e *env) destroyLater(s cove.Sandbox) {
	e.Cleanup(func() {
		// A case may have closed the provider; then its own end tells the rest.
		if err := e.p.Remove(e.last(), s.ID()); cove.CodeOf(err) != cove.Unavailable {
			e.check(err, "remove the sandbox")
		}
	})
}

// ids lists what the provider holds.
func (e *env) ids() []cove.ID {
	e.Helper()
	var list []cove.ID
	for id, err := range e.p.List(e.ctx()) {
		e.must(err, "list")
		list = append(list, id)
	}
	return list
}

// ran is how a program ended and what it wrote.
type ran struct {
	cove.Result

	stdout, stderr string
}

// run runs a command to its end.
func (e *env) run(s cove.Sandbox, cmd cove.Command) ran {
	e.Helper()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	r := e.wait(e.start(s, cmd))
	return ran{r, stdout.String(), stderr.String()}
}

// argv runs a program to its end.
func (e *env) argv(s cove.Sandbox, argv ...string) ran {
	e.Helper()
	return e.run(s, cove.Command{Argv: argv})
}

// sh runs a script to its end; args are $1 and on.
func (e *env) sh(s cove.Sandbox, script string, args ...string) ran {
	e.Helper()
	return e.run(s, shell(script, args...))
}

func shell(script string, args ...string) cove.Command {
	return cove.Command{Argv: append([]string{"sh", "-c", script, "sh"}, args...)}
}

// start starts a program that is killed with the case.
func (e *env) start(s cove.Sandbox, cmd cove.Command) cove.Process {
	e.Helper()
	p, err := s.Start(e.ctx(), cmd)
	e.must(err, "start "+strings.Join(cmd.Argv[:min(len(cmd.Argv), 4)], " "))
	e.Cleanup(func() { e.check(p.Kill(e.last()), "kill") })
	return p
}

func (e *env) wait(p cove.Process) cove.Result {
	e.Helper()
	r, err := p.Wait(e.ctx())
	e.must(err, "wait")
	return r
}

// prints demands that a script succeeds and what it writes.
func (e *env) prints(s cove.Sandbox, want, script string, args ...string) {
	e.Helper()
	r := e.sh(s, script, args...)
	if r.stdout != want || r.Outcome != cove.Exited || r.ExitCode != 0 {
		e.Errorf("%s\nprints %q and is %s with code %d; want %q and code 0\nstderr: %s", script, clip(r.stdout), r.Outcome, r.ExitCode, clip(want), clip(r.stderr))
	}
}

// ended demands how a program ended.
func (e *env) ended(r cove.Result, outcome cove.Outcome, code int, sig cove.Signal) {
	e.Helper()
	if r.Outcome != outcome || r.ExitCode != code || r.Signal != sig {
		e.Errorf("the program ended as %s with code %d and signal %q; want %s, %d and %q", r.Outcome, r.ExitCode, r.Signal, outcome, code, sig)
	}
}

func clip(s string) string {
	if len(s) > 400 {
		return s[:200] + " … " + s[len(s)-200:]
	}
	return s
}

// write writes a file that must be written.
func (e *env) write(s cove.Sandbox, name, content string) {
	e.Helper()
	e.must(s.Files().Write(e.ctx(), name, strings.NewReader(content), 0o644), "write "+name)
}

// read returns the content of a file.
func (e *env) read(s cove.Sandbox, name string) string {
	e.Helper()
	text, err := e.content(s, name, 0, 0)
	e.must(err, "read "+name)
	return text
}

func (e *env) content(s cove.Sandbox, name string, offset, length int64) (string, error) {
	r, err := s.Files().Read(e.ctx(), name, offset, length)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	e.check(r.Close(), "close "+name)
	return string(b), err
}

// equal demands that two values are the same.
func equal[T comparable](e *env, got, want T, what string) {
	e.Helper()
	if got != want {
		e.Errorf("%s is %v; want %v", what, got, want)
	}
}
