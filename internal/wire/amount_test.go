package wire_test

import (
	"errors"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// TestAmountsThatAreNone: what is given must be above 0, and the answer names
// the field.
func TestAmountsThatAreNone(t *testing.T) {
	for body, field := range map[string]string{
		`{"timeout_minutes":0}`:        "timeout_minutes",
		`{"timeout_minutes":-1}`:       "timeout_minutes",
		`{"timeout_minutes":1e30}`:     "timeout_minutes",
		`{"lifetime_minutes":1e-30}`:   "lifetime_minutes",
		`{"memory_limit":"0"}`:         "memory_limit",
		`{"memory_limit":"many"}`:      "memory_limit",
		`{"memory_limit":-1}`:          "memory_limit",
		`{"cpu_limit":"-1"}`:           "cpu_limit",
		`{"cpu_limit":"some"}`:         "cpu_limit",
		`{"pids_limit":0}`:             "pids_limit",
		`{"workspace":{"files":0}}`:    "workspace.files",
		`{"workspace":{"size_mb":-5}}`: "workspace.size_mb",
	} {
		w, err := wire.Decode[wire.Spec]([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Cove()
		e, ok := errors.AsType[*cove.Error](err)
		if !ok || e.Code != cove.Invalid || e.Details["field"] != field {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, r := range []wire.ExecRequest{{Timeout: new(0.0)}, {MaxOutput: new(wire.Quantity("0"))}, {Stdin: new("x"), StdinBase64: []byte("y")}} {
		if _, err := r.Cove(); !errors.Is(err, cove.Invalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for _, r := range []wire.RunRequest{{TimeoutSeconds: new(-1.0)}, {MaxRows: new(0)}, {MaxOutputBytes: new(int64(0))}} {
		if _, err := r.Cove(); !errors.Is(err, cove.Invalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for _, r := range []wire.KeyRequest{{TTLSeconds: new(0.0)}, {Defaults: &wire.Spec{PIDsLimit: new(0)}}} {
		if _, err := r.Cove(); !errors.Is(err, cove.Invalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if _, err := (wire.OpenRequest{Spec: wire.Spec{PIDsLimit: new(0)}}).Cove(); !errors.Is(err, cove.Invalid) {
		t.Error(err)
	}
}

func TestAmountsAsNumbers(t *testing.T) {
	w, err := wire.Decode[wire.Spec]([]byte(`{"memory_limit":1048576,"cpu_limit":0.5,"timeout_minutes":0.5}`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Cove()
	if err != nil || s.Resources.Memory != cove.MiB || s.Resources.CPUs != 0.5 || s.Idle.Seconds() != 30 {
		t.Errorf("%+v %v", s, err)
	}
}
