package platformtest

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// patience is how long a case may take before it counts as hung.
const patience = 2 * time.Minute

// rig is one platform under test, and the steps that many cases share. Its
// methods end the test where they cannot go on, so only the test's own
// goroutine may call them.
type rig struct {
	t     *testing.T
	ctx   context.Context //nolint:containedctx // a rig lives as long as its test
	h     Harness
	seen  *record
	users map[string]cove.Platform
}

// start opens a platform for one case and closes it at the end.
func (s *suite) start(t *testing.T, o Options) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	h := s.open(t, o)
	t.Cleanup(h.Close)
	return &rig{t: t, ctx: ctx, h: h, seen: s.seen, users: map[string]cove.Platform{}}
}

// as binds the platform to a caller.
func (r *rig) as(p cove.Principal) cove.Platform {
	return recorder{in: r.h.As(p), rec: r.seen}
}

// user is a caller of one tenant who may do all but administer.
func (r *rig) user(tenant string) cove.Platform {
	if _, ok := r.users[tenant]; !ok {
		r.users[tenant] = r.as(cove.Principal{Name: "user-" + tenant, Tenant: tenant, Scopes: without(cove.ScopeAdmin)})
	}
	return r.users[tenant]
}

// admin is the operator.
func (r *rig) admin() cove.Platform {
	const name = "\x00operator"
	if _, ok := r.users[name]; !ok {
		r.users[name] = r.as(cove.Principal{Name: "operator", Tenant: "ops", Scopes: []cove.Scope{cove.ScopeAll}})
	}
	return r.users[name]
}

// restart crashes the platform, or skips the test where it cannot.
func (r *rig) restart() {
	r.t.Helper()
	err := r.h.Restart()
	if errors.Is(err, errors.ErrUnsupported) {
		r.t.Skip("this platform cannot be restarted here")
	}
	r.must(err, "restart")
	clear(r.users)
}

// without returns every single scope but those named.
func without(scopes ...cove.Scope) []cove.Scope {
	return slices.DeleteFunc(cove.Scopes(), func(s cove.Scope) bool {
		return s == cove.ScopeAll || slices.Contains(scopes, s)
	})
}

// capabilities are those of the provider that serves by default.
func (r *rig) capabilities() cove.Capabilities {
	r.t.Helper()
	rows, err := r.admin().Admin().Doctor(r.ctx)
	r.must(err, "doctor")
	i := slices.IndexFunc(rows, func(row cove.ProviderReport) bool { return row.Default })
	if i < 0 {
		r.t.Fatalf("doctor names no default provider: %+v", rows)
	}
	return rows[i].Capabilities
}

// needs skips the test where the provider lacks a power.
func (r *rig) needs(power cove.Power) {
	r.t.Helper()
	if !slices.Contains(r.capabilities().Powers, power) {
		r.t.Skipf("the provider has no power to %s", power)
	}
}

func (r *rig) session(p cove.Platform, spec cove.Spec) *cove.Session {
	r.t.Helper()
	s, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: spec})
	r.must(err, "open")
	return s
}

func (r *rig) get(p cove.Platform, id cove.ID) *cove.Session {
	r.t.Helper()
	s, err := p.Sessions().Get(r.ctx, id)
	r.must(err, "get")
	return s
}

func (r *rig) exec(p cove.Platform, id cove.ID, req cove.ExecRequest) *cove.Execution {
	r.t.Helper()
	e, err := p.Processes(id).Exec(r.ctx, req)
	r.must(err, "exec")
	return e
}

// sh runs a line that must succeed and returns what it wrote to stdout.
func (r *rig) sh(p cove.Platform, id cove.ID, line string) string {
	r.t.Helper()
	e := r.exec(p, id, cove.ExecRequest{Line: line})
	if e.Outcome != cove.Exited || e.ExitCode != 0 {
		r.t.Fatalf("%s: %s with exit code %d; stderr %q", line, e.Outcome, e.ExitCode, e.Stderr.Data)
	}
	return string(e.Stdout.Data)
}

func (r *rig) background(p cove.Platform, id cove.ID, req cove.ExecRequest) cove.PID {
	r.t.Helper()
	info, err := p.Processes(id).Start(r.ctx, req)
	r.must(err, "start a program")
	return info.PID
}

// idle is a program that runs until its input ends.
func (r *rig) idle(p cove.Platform, id cove.ID) cove.PID {
	r.t.Helper()
	return r.background(p, id, cove.ExecRequest{Line: "cat", KeepStdin: true})
}

func (r *rig) wait(p cove.Platform, id cove.ID, pid cove.PID) *cove.Execution {
	r.t.Helper()
	e, err := p.Processes(id).Wait(r.ctx, pid)
	r.must(err, "wait")
	return e
}

func (r *rig) write(p cove.Platform, id cove.ID, name, text string) {
	r.t.Helper()
	r.must(p.Files(id).Write(r.ctx, name, strings.NewReader(text), 0o644), "write "+name)
}

func (r *rig) read(p cove.Platform, id cove.ID, name string) string {
	r.t.Helper()
	body, err := p.Files(id).Read(r.ctx, name, 0, 0)
	r.must(err, "read "+name)
	return r.drain(body)
}

func (r *rig) drain(body io.ReadCloser) string {
	r.t.Helper()
	data, err := io.ReadAll(body)
	r.must(err, "read to the end")
	r.must(body.Close(), "close a reader")
	return string(data)
}

// stop stops a session and closeNow ends one.
func (r *rig) stop(p cove.Platform, id cove.ID) {
	r.t.Helper()
	s, err := p.Sessions().Stop(r.ctx, id)
	r.must(err, "stop")
	if s.State != cove.Stopped {
		r.t.Fatalf("a session that was stopped is %s", s.State)
	}
}

func (r *rig) closeNow(p cove.Platform, id cove.ID) {
	r.t.Helper()
	_, err := p.Sessions().Close(r.ctx, id, false)
	r.must(err, "close")
}

// collect returns all that a sequence yields before its first error.
func collect[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for v, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

// all is collect for a sequence that must not fail.
func all[T any](r *rig, seq iter.Seq2[T, error]) []T {
	r.t.Helper()
	list, err := collect(seq)
	r.must(err, "list")
	return list
}

// answer is what a call in another goroutine returned.
type answer[T any] struct {
	value T
	err   error
}

// async makes a call in another goroutine; the channel gets its one answer.
func async[T any](call func() (T, error)) <-chan answer[T] {
	ch := make(chan answer[T], 1)
	go func() {
		v, err := call()
		ch <- answer[T]{v, err}
	}()
	return ch
}

// receive takes one value, or ends the test when none comes.
func receive[T any](r *rig, ch <-chan T, what string) T {
	r.t.Helper()
	var v T
	select {
	case v = <-ch:
	case <-r.ctx.Done():
		r.t.Fatalf("%s: it never came", what)
	}
	return v
}

// eventually tries again until ok says yes. It is for what nothing announces,
// such as a server that learns that its caller went away.
func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			r.t.Fatalf("%s: it never came true", what)
		}
	}
}
