package platformtest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func classCases() []testCase {
	return []testCase{
		{"of_programs", classesOfPrograms},
		{"of_code", classesOfCode},
		{"of_sessions", classesOfSessions},
	}
}

// wantClasses checks that an error is of the classes that are named and of no other.
func wantClasses(t *testing.T, err error, code cove.Code, want ...cove.Class) {
	t.Helper()
	wantCode(t, err, code)
	for _, c := range cove.Classes() {
		if got := errors.Is(err, c); got != slices.Contains(want, c) {
			t.Errorf("that an error is of the class %q is %v: %v", c, got, err)
		}
	}
}

// classesOfPrograms: a program that fails is an error for those who want one.
func classesOfPrograms(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	in := p.Processes(r.session(p, cove.Spec{Policy: "agent-bash"}).ID)
	free := p.Processes(r.session(p, cove.Spec{}).ID)
	run := func(in cove.Processes, req cove.ExecRequest) error {
		t.Helper()
		x, err := in.Exec(r.ctx, req)
		r.must(err, "run "+req.Line)
		return x.Err()
	}
	if err := run(free, cove.ExecRequest{Line: "true"}); err != nil {
		t.Errorf("a program that went well: %v", err)
	}
	err := run(free, cove.ExecRequest{Line: "echo why >&2; exit 3"})
	wantClasses(t, err, cove.Invalid, cove.ErrCommandExecution)
	same(t, "the exit code", detail(err, "exit_code"), 3)
	same(t, "the message", cove.MessageOf(err), "the program failed with exit code 3: why")
	wantClasses(t, run(free, cove.ExecRequest{Line: "sleep 60", Limits: cove.Limits{Wall: 100 * time.Millisecond}}), cove.Timeout, cove.ErrCommandExecution)
	wantClasses(t, run(free, cove.ExecRequest{Line: "echo 0123456789", Limits: cove.Limits{Output: 4}}), cove.Exhausted, cove.ErrCommandExecution, cove.ErrResourceLimit)
	wantClasses(t, run(in, cove.ExecRequest{Line: "curl example.com"}), cove.Denied, cove.ErrCommandExecution)
}

func classesOfCode(t *testing.T, s *suite) {
	c := s.coder(t)
	if err := c.run(c.Assign, "").Err(); err != nil {
		t.Errorf("code that went well: %v", err)
	}
	err := c.run(c.Raise, "").Err()
	wantClasses(t, err, cove.Invalid, cove.ErrCodeExecution)
	same(t, "the name of the error", detail(err, "error"), c.Kind)
	if err := c.run(c.Die, "").Err(); !errors.Is(err, cove.ErrCodeExecution) {
		t.Errorf("an interpreter that died: %v", err)
	}
	late, err := c.in.Run(c.ctx, cove.CodeRequest{Language: c.Name, Code: c.Loop, Limits: cove.Limits{Wall: 200 * time.Millisecond}})
	c.must(err, "run code over its time")
	wantClasses(t, late.Err(), cove.Timeout, cove.ErrCodeExecution)
}

func classesOfSessions(t *testing.T, s *suite) {
	never := false
	r := s.start(t, Options{MaxSessions: 1, AutoRetry: &never})
	p := r.user("acme")
	one := r.session(p, cove.Spec{})
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{})
	wantClasses(t, err, cove.Exhausted, cove.ErrResourceLimit)
	for _, id := range []cove.ID{cove.NewID(), "none", ""} {
		_, err := p.Sessions().Get(r.ctx, id)
		wantClasses(t, err, cove.NotFound, cove.ErrSessionNotFound)
		_, err = p.Processes(id).Exec(r.ctx, cove.ExecRequest{Line: "true"})
		wantClasses(t, err, cove.NotFound, cove.ErrSessionNotFound)
		_, err = p.Contexts(id).Run(r.ctx, cove.CodeRequest{Language: "any", Code: "1"})
		wantClasses(t, err, cove.NotFound, cove.ErrSessionNotFound)
	}
	wantClasses(t, failure(p.Files(one.ID).Stat(r.ctx, "none")), cove.NotFound)
	_, err = p.Sessions().Close(r.ctx, one.ID, false)
	r.must(err, "close")
	_, err = p.Processes(one.ID).Exec(r.ctx, cove.ExecRequest{Line: "true"})
	wantClasses(t, err, cove.NotFound, cove.ErrSessionNotFound)
	_, err = p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{Require: cove.Require{Isolation: cove.BoundaryRemote}}})
	wantClasses(t, err, cove.Unsupported, cove.ErrSandboxCreation)
}
