package mcpserver

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// guard refuses requests that a web page sent by way of a name of its own, or from
// another origin. Where a server listens for this machine alone, a browser on it
// can be led there by any name; so only this machine's names, and those that the
// operator knows of, are good there.
func guard(r *http.Request, hosts []string) error {
	host := hostname(r.Host)
	known := isLocal(host) || slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) })
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && isLocal(hostname(local.String())) && !known {
		return cove.Errorf(cove.Denied, "the host %.100q is not a name of this server", host).Remedy("use localhost, or the name in COVE_PUBLIC_URL")
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	u, err := url.Parse(origin)
	from := ""
	if err == nil {
		from = u.Hostname()
	}
	if from == "" || !strings.EqualFold(from, host) && !(known && isLocal(from)) {
		return cove.Errorf(cove.Denied, "pages of %.100q may not call this server", origin)
	}
	return nil
}

func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// isLocal reports whether a name is this machine's own.
func isLocal(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
