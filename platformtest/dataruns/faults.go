package dataruns

import "github.com/cove-sandbox/cove"

// faultCases are about what can fail below a run. Each is an answer like others,
// and nothing is tried twice in silence.
func faultCases() []testCase {
	return []testCase{
		{"StartFailure", func(r *rig) { broken(r, FaultStart, cove.RunUnavailable) }},
		{"Transport", func(r *rig) { broken(r, FaultTransport, cove.RunUnavailable) }},
		{"NonJSONAnswer", func(r *rig) {
			h := r.own(Setup{Fault: FaultAnswer})
			r.wantError(r.ask(h.As(analyst("acme")), sql(shop, "SELECT 1")), cove.RunInternalError)
		}},
	}
}

func broken(r *rig, f Fault, kind string) {
	h := r.own(Setup{Fault: f})
	p := h.As(analyst("acme"))
	for _, req := range []cove.RunRequest{sql(shop, "SELECT 1"), python(shop, "result = 1")} {
		r.wantError(r.ask(p, req), kind)
	}
}
