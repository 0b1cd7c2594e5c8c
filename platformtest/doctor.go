package platformtest

import (
	"testing"

	"github.com/cove-sandbox/cove"
)

func doctorCases() []testCase {
	return []testCase{{"rows", doctorRows}}
}

func doctorRows(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	rows, err := p.Admin().Doctor(r.ctx)
	r.must(err, "doctor")
	provider := r.session(p, cove.Spec{}).Provider
	defaults := 0
	for _, row := range rows {
		if row.Default {
			defaults++
			if row.Name != provider || !row.Capabilities.Ready {
				t.Errorf("the default provider is %+v; a session is served by %s", row, provider)
			}
		}
		c := row.Capabilities
		if !c.Ready && (c.Why == "" || c.Remedy == "") {
			t.Errorf("provider %s is not ready and does not say why and what to do: %+v", row.Name, c)
		}
		if c.Ready && (c.Isolation.Boundary == "" || len(c.Templates) == 0 || len(c.Workspaces) == 0 || len(c.Networks) == 0) {
			t.Errorf("provider %s is ready and does not say what it offers: %+v", row.Name, c)
		}
	}
	if defaults != 1 {
		t.Errorf("%d of the providers are the default: %+v", defaults, rows)
	}
}
