//go:build linux

package local_test

import (
	"testing"

	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

// TestDefencesAreMissed takes one defence away at a time. The attacks that it
// stops must then get through, or the battery could not tell it from a wall that
// fell; with all of them in place they must not.
func TestDefencesAreMissed(t *testing.T) {
	for defence, attacks := range map[string][]string{
		"filter":    {"keyrings", "userns_unshare", "calls_32bit"},
		"processes": {"fork_bomb"},
		"network":   {"host_loopback"},
		"read-only": {"submounts"},
	} {
		t.Run(defence, func(t *testing.T) {
			for _, attack := range attacks {
				for _, weak := range []bool{true, false} {
					f := attempt(t, defence, weak, attack)
					if f.Skipped != "" {
						t.Skipf("%s: %s", attack, f.Skipped)
					}
					if f.GotThrough() != weak {
						t.Errorf("%s, with the defence left out: %t: %+v", attack, weak, f)
					}
				}
			}
		})
	}
}

func attempt(t *testing.T, defence string, weak bool, attack string) escape.Finding {
	t.Helper()
	cfg := local.Config{Dir: t.TempDir()}
	if weak {
		cfg.Weaken(defence)
	}
	p, err := local.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	providertest.Ready(t, p)
	f, err := escape.RunOne(t.Context(), p, attack, escape.Exec, escape.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}
