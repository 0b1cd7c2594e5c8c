package preview

import (
	"net"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
)

// place is one port of one session.
type place struct {
	session cove.ID
	port    int
}

// Host returns the name of a port of a session below a domain.
func Host(port int, session cove.ID, domain string) string {
	return strconv.Itoa(port) + "-" + string(session) + "." + domain
}

// bare returns a host without its port, as names are compared.
func bare(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// Owns reports whether a request for host is one for a preview, or for nothing:
// whatever is below the domain must never be answered by anybody else.
func (h *Handler) Owns(host string) bool {
	name := bare(host)
	return name == h.cfg.Domain && !h.cfg.Below || strings.HasSuffix(name, "."+h.cfg.Domain)
}

// find returns the place that a host names.
func (h *Handler) find(host string) (at place, ok bool) {
	label, ok := strings.CutSuffix(bare(host), "."+h.cfg.Domain)
	if !ok {
		return at, false
	}
	digits, id, ok := strings.Cut(label, "-")
	port, err := strconv.Atoi(digits)
	at = place{session: cove.ID(id), port: port}
	// A place has one name, or it would have several origins.
	return at, ok && err == nil && cove.ValidPort(port) == nil && strconv.Itoa(port) == digits && at.session.Valid()
}
