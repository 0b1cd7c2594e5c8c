package e2bapi

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
)

// Ports of a sandbox that are ours.
const (
	envdPort        = 49983
	interpreterPort = 49999
)

// Headers that tell a sandbox where hosts do not.
const (
	sandboxHeader = "E2b-Sandbox-Id"
	portHeader    = "E2b-Sandbox-Port"
	trafficHeader = "E2b-Traffic-Access-Token"
)

// place is what a request is for: a port of a sandbox, or, without one, the control
// API.
type place struct {
	id   cove.ID
	port int
}

// bare returns a host without its port, as names are compared.
func bare(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// below returns the label of a host below the domain.
func (h *Handler) below(host string) (label string, ok bool) {
	if h.cfg.Domain == "" {
		return "", false
	}
	return strings.CutSuffix(bare(host), "."+bare(h.cfg.Domain))
}

// origin is where a client that made a request reaches the control API again. No header
// of a proxy is believed: that there is one with TLS in front is said by the domain, which
// is reached over HTTPS alone, or by Public.
func (h *Handler) origin(r *http.Request) *url.URL {
	_, inDomain := h.below(r.Host)
	switch {
	case inDomain || r.TLS != nil:
		return &url.URL{Scheme: "https", Host: r.Host}
	case h.cfg.Public != nil:
		return h.cfg.Public
	}
	return &url.URL{Scheme: "http", Host: r.Host}
}

// placeOf returns what a request is for. A header must not lead elsewhere than a host.
func (h *Handler) placeOf(r *http.Request) (place, error) {
	byHeader, err := headerPlace(r.Header)
	if err != nil {
		return place{}, err
	}
	label, ok := h.below(r.Host)
	if !ok {
		return byHeader, nil
	}
	if label == "api" && byHeader.id == "" {
		return place{}, nil
	}
	digits, id, _ := strings.Cut(label, "-")
	at, err := parsePlace(id, digits)
	if err != nil {
		return at, cove.Errorf(cove.NotFound, "no sandbox has this host")
	}
	if byHeader.id != "" && byHeader.id != at.id {
		return at, cove.InvalidField(sandboxHeader, "names another sandbox than the host")
	}
	return at, nil
}

func headerPlace(header http.Header) (place, error) {
	ids := header.Values(sandboxHeader)
	switch len(ids) {
	case 0:
		return place{}, nil
	case 1:
		at, err := parsePlace(ids[0], header.Get(portHeader))
		if err != nil {
			err = cove.InvalidField(sandboxHeader, "and %s name no port of a sandbox", portHeader)
		}
		return at, err
	default:
		return place{}, cove.InvalidField(sandboxHeader, "is there more than once")
	}
}

// parsePlace reads a port and an id. An id that cannot be one is NotFound later, as any
// that is not there.
func parsePlace(id, digits string) (at place, err error) {
	at = place{id: cove.ID(id)}
	if at.port, err = strconv.Atoi(digits); err == nil {
		err = cove.ValidPort(at.port)
	}
	if err == nil && id == "" {
		err = cove.Errorf(cove.Invalid, "no id")
	}
	return at, err
}
