package cluster

import (
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// Authenticate returns who asks at the door for other nodes: whoever the node at the
// other end says.
func (m *Member) Authenticate(r *http.Request) (cove.Principal, func(), error) {
	nothing := func() {}
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return cove.Principal{}, nothing, cove.Errorf(cove.Unauthenticated, "only nodes of this cluster are answered here")
	}
	p, err := wire.DecodePrincipal(r.Header.Get(wire.PrincipalHeader))
	return p, nothing, err
}

// WantsAny reports whether who asks at the door wants any node of this cluster: it
// is of another one.
func WantsAny(r *http.Request) bool { return r.TLS != nil && r.TLS.ServerName == anyNode }
