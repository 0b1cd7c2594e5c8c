package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// TestBriefSpec: what is written by hand is what would be written without.
func TestBriefSpec(t *testing.T) {
	for _, tc := range []struct {
		spec  cove.Spec
		brief bool
	}{
		{cove.Spec{}, true},
		{cove.Spec{Provider: "local"}, true},
		{cove.Spec{Policy: "agent-bash", Template: "base"}, true},
		{cove.Spec{Provider: "local", Template: "my_tree-2", Flavor: "small", Policy: "agent-bash"}, true},
		{cove.Spec{Provider: `lo"cal`}, false},
		{cove.Spec{Template: "café"}, false},
		{cove.Spec{Provider: "local", Idle: time.Second}, false},
		{cove.Spec{Resources: cove.Resources{PIDs: 1}}, false},
		{cove.Spec{Env: map[string]string{"A": "b"}}, false},
		{cove.Spec{Env: map[string]string{}}, false},
	} {
		got, ok := engine.BriefSpec(tc.spec)
		want, err := json.Marshal(tc.spec)
		if err != nil {
			t.Fatal(err)
		}
		if ok != tc.brief || ok && string(got) != string(want) {
			t.Errorf("%+v: %v %s, want %s", tc.spec, ok, got, want)
		}
	}
}
