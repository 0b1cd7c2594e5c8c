package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/provider/providertest"
)

// some is little of everything that is measured of the SDK for Python.
func some(t *testing.T) sdkOptions {
	t.Helper()
	const python = "/usr/bin/python3"
	if _, err := exec.LookPath(python); err != nil {
		providertest.Lacks(t, "python", "there is no "+python)
	}
	return sdkOptions{restartOptions: little(t).restartOptions, python: python, source: "../sdk/python/src", rounds: 2, turn: 3, imports: 1}
}

// TestSDKRows proves that everything is measured, on a pretend provider; the numbers
// are not looked at.
func TestSDKRows(t *testing.T) {
	rows, err := sdkRows(t.Context(), some(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 4 {
		t.Errorf("%d rows", len(rows))
	}
	for _, r := range rows {
		if r.name == "" || r.must == 0 || strings.HasPrefix(r.measured, "0.00") || strings.HasPrefix(r.baseline, "0.00") {
			t.Errorf("%+v lacks something", r)
		}
	}
}

func TestSDKRowsSayWhatIsWrong(t *testing.T) {
	o := some(t)
	o.source = t.TempDir()
	if _, err := sdkRows(t.Context(), o); err == nil || !strings.Contains(err.Error(), "the package is not there") {
		t.Errorf("another folder: %v", err)
	}
	o = some(t)
	o.cove = "/nowhere"
	if _, err := sdkRows(t.Context(), o); err == nil {
		t.Error("there is no server")
	}
	if _, err := o.importing(t.Context(), t.TempDir(), nil, "no_such_module"); err == nil || !strings.Contains(err.Error(), "ModuleNotFoundError") {
		t.Errorf("what cannot be imported: %v", err)
	}
	o.python = "/nowhere/python3"
	if text, rows, err := sdkPart(t.Context(), options{sdk: o}); err != nil || len(rows) != 0 || !strings.Contains(text, "was not measured") {
		t.Errorf("%q, %v, %v", text, rows, err)
	}
}
