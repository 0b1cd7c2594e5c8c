package e2bapi

import (
	"encoding/json"
	"time"

	"github.com/cove-sandbox/cove"
)

// SpecOf translates the body of a request for a sandbox.
func SpecOf(body []byte) (cove.Spec, error) {
	var b newSandbox
	if err := json.Unmarshal(body, &b); err != nil {
		return cove.Spec{}, cove.Wrap(cove.Invalid, err, "not JSON")
	}
	return specOf(b, cove.NetworkOpen, ceiling(cove.NetworkOpen))
}

// Paces is paces.
type Paces struct{ p paces }

// Take is take.
func (p *Paces) Take(id cove.ID) error { return p.p.take(id) }

// Len is how many sandboxes are remembered.
func (p *Paces) Len() int { return len(p.p.all) }

// What tests of paces know.
const (
	OpenBurst = openBurst
	MaxPaces  = maxPaces
	MaxMeters = maxMeters
)

// Meters is meters.
type Meters struct{ m meters }

// Share is share.
func (m *Meters) Share(s *cove.Session, cpu time.Duration, now time.Time) float64 {
	return m.m.share(s, cpu, now)
}

// Len is how many sandboxes are remembered.
func (m *Meters) Len() int { return len(m.m.all) }

// Problem is what the control API and Connect say of an error.
func Problem(err error) (status int, word string, rpc int, text string) {
	s := shapeOf(err)
	return s.status, rpcProblemOf(err).Code, s.rpc, rpcProblemOf(err).Message
}

// WaitOf is waitOf.
var WaitOf = waitOf
