package cove_test

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func TestTrialRequests(t *testing.T) {
	line := cove.ExecRequest{Line: "true"}
	for _, then := range []cove.TrialEnd{cove.ThenKeep, cove.ThenCommit, cove.ThenDiscard, cove.ThenCommitOnSuccess} {
		if err := (cove.TrialRequest{ExecRequest: line, Then: then}).Validate(); err != nil {
			t.Errorf("%q: %v", then, err)
		}
	}
	for field, r := range map[string]cove.TrialRequest{
		"then":    {ExecRequest: line, Then: "perhaps"},
		"command": {},
		"tty":     {ExecRequest: cove.ExecRequest{Line: "true", TTY: &cove.WindowSize{Cols: 80, Rows: 24}}},
	} {
		if err := r.Validate(); cove.CodeOf(err) != cove.Invalid || !strings.HasPrefix(cove.MessageOf(err), field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestNetworks(t *testing.T) {
	many := func(n int, name string) []string {
		var list []string
		for i := range n {
			list = append(list, name+strings.Repeat("x", i))
		}
		return list
	}
	for _, n := range []cove.Network{
		{},
		{Mode: cove.NetworkNone},
		{Mode: cove.NetworkOpen, Secrets: []string{"openai", "GITHUB_TOKEN", "a.b-c"}},
		{Mode: cove.NetworkAllow, Allow: []string{"a.com", "*.b.com:8443"}, Secrets: many(32, "s")},
	} {
		if err := n.Validate(); err != nil {
			t.Errorf("%+v: %v", n, err)
		}
		if err := (cove.Spec{Network: n}).Validate(); err != nil {
			t.Errorf("a spec with %+v: %v", n, err)
		}
	}
	for _, c := range []struct {
		field string
		n     cove.Network
	}{
		{"network.mode", cove.Network{Mode: "wide"}},
		{"network.allow", cove.Network{Mode: cove.NetworkAllow}},
		{"network.allow", cove.Network{Allow: []string{"a.com"}}},
		{"network.allow", cove.Network{Mode: cove.NetworkOpen, Allow: []string{"a.com"}}},
		{"network.allow", cove.Network{Mode: cove.NetworkAllow, Allow: []string{"a.com", "b c"}}},
		{"network.allow", cove.Network{Mode: cove.NetworkAllow, Allow: []string{strings.Repeat("a", 300)}}},
		{"network.allow", cove.Network{Mode: cove.NetworkAllow, Allow: many(300, "a")[:257]}},
		{"network.secrets", cove.Network{Secrets: []string{"a"}}},
		{"network.secrets", cove.Network{Mode: cove.NetworkNone, Secrets: []string{"a"}}},
		{"network.secrets", cove.Network{Mode: cove.NetworkOpen, Secrets: []string{""}}},
		{"network.secrets", cove.Network{Mode: cove.NetworkOpen, Secrets: []string{"../key"}}},
		{"network.secrets", cove.Network{Mode: cove.NetworkOpen, Secrets: []string{"a", "a"}}},
		{"network.secrets", cove.Network{Mode: cove.NetworkOpen, Secrets: []string{strings.Repeat("a", 65)}}},
		{"network.secrets", cove.Network{Mode: cove.NetworkOpen, Secrets: many(33, "s")}},
	} {
		for _, err := range []error{c.n.Validate(), cove.Spec{Network: c.n}.Validate()} {
			if cove.CodeOf(err) != cove.Invalid || !strings.HasPrefix(cove.MessageOf(err), c.field+": ") {
				t.Errorf("%.200v gives %v; want a word about %s", c.n, err, c.field)
			}
		}
	}
}
