package engine_test

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// denyAll is a policy that says no to everything.
type denyAll struct{}

func (denyAll) Decide(cove.Action) cove.Decision {
	return cove.Decision{Effect: cove.Deny, Layer: cove.Authorization, Refusal: &cove.Refusal{Rule: "none", Reason: "nothing is allowed"}}
}

// countingJournal counts lines and keeps none.
type countingJournal struct{ lines []cove.Event }

func (j *countingJournal) Append(_ context.Context, e *cove.Event, _ bool) error {
	j.lines = append(j.lines, *e)
	return nil
}

func (j *countingJournal) Events(context.Context, cove.EventFilter) iter.Seq2[cove.Event, error] {
	return func(func(cove.Event, error) bool) {}
}
func (*countingJournal) Digest([]byte) string { return "" }
func (*countingJournal) Close() error         { return nil }

// TestEveryMethodIsGuarded walks every method of every part of the platform
// under a policy that denies everything. Each must answer Denied and leave
// exactly one line in the journal. A method that reaches a sandbox by another
// road than act fails here.
func TestEveryMethodIsGuarded(t *testing.T) {
	parts := reflect.TypeFor[cove.Platform]()
	methods := 0
	for part := range parts.Methods() {
		for method := range part.Type.Out(0).Methods() {
			methods++
			t.Run(part.Name+"."+method.Name, func(t *testing.T) { guarded(t, part.Name, method.Name) })
		}
	}
	if methods != len(cove.Verbs()) {
		t.Errorf("the platform has %d methods and there are %d verbs: give every method its own verb in verb.go", methods, len(cove.Verbs()))
	}
}

func guarded(t *testing.T, part, method string) {
	j := &countingJournal{}
	e := openEngine(t, func(c *engine.Config) { c.Policy, c.Journal = denyAll{}, j })
	j.lines = nil
	accessor := reflect.ValueOf(e.As(cove.Principal{Name: "eve"})).MethodByName(part)
	v := accessor.Call(zeros(t, accessor.Type()))[0]
	f := v.MethodByName(method)
	err := lastError(t, f.Call(zeros(t, f.Type())))
	if !errors.Is(err, cove.Denied) {
		t.Errorf("the error is %v, want Denied: the method does not go through act", err)
	}
	if len(j.lines) != 1 {
		t.Fatalf("the journal has %d lines, want 1", len(j.lines))
	}
	want := strings.ToLower(strings.TrimSuffix(part, "s")) + "."
	if strings.HasSuffix(part, "sses") {
		want = "process."
	}
	if got := j.lines[0]; !strings.HasPrefix(got.Kind, want) || got.Effect != cove.Deny || got.Principal != "eve" {
		t.Errorf("the line is %+v, want a refused %s… of eve", got, want)
	}
}

// zeros returns a zero value for each parameter of f, and the test's context
// where f wants one.
func zeros(t *testing.T, f reflect.Type) []reflect.Value {
	var in []reflect.Value
	for param := range f.Ins() {
		if param == reflect.TypeFor[context.Context]() {
			in = append(in, reflect.ValueOf(t.Context()))
			continue
		}
		in = append(in, reflect.Zero(param))
	}
	return in
}

// lastError finds the error in what a method returned; an iterator is asked
// for its first element.
func lastError(t *testing.T, out []reflect.Value) error {
	last := out[len(out)-1]
	if err, ok := reflect.TypeAssert[error](last); ok {
		return err
	}
	if last.Kind() != reflect.Func {
		t.Fatalf("the method returned %v and no error", last)
	}
	var err error
	yield := reflect.MakeFunc(last.Type().In(0), func(args []reflect.Value) []reflect.Value {
		err, _ = reflect.TypeAssert[error](args[1])
		return []reflect.Value{reflect.ValueOf(false)}
	})
	last.Call([]reflect.Value{yield})
	return err
}
