package preview

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
)

// maxHeaders bounds the head of an answer of a program.
const maxHeaders = 64 << 10

// proxy carries one request over a connection to the program. Connections are not
// kept for the next one: as long as one is open, its session is in use.
func (v *visit) proxy(inside net.Conn) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        v.rewrite,
		ModifyResponse: v.tame,
		ErrorHandler:   func(_ http.ResponseWriter, r *http.Request, err error) { v.refuse(v.blame(r.Context(), err)) },
		ErrorLog:       slog.NewLogLogger(v.cfg.Logger.Handler(), slog.LevelDebug),
		FlushInterval:  -1, // events are for now
		Transport: &http.Transport{
			DialContext:       func(context.Context, string, string) (net.Conn, error) { return inside, nil },
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeaders,
		},
	}
}

// credentials are the headers by which callers are known to Cove, or by which a
// proxy before it would be believed.
var credentials = []string{"Authorization", "Proxy-Authorization", "X-Api-Key", "X-Real-Ip", "E2b-Traffic-Access-Token"}

// own are those of them that a program may want for itself, at a door where Cove
// wants none.
var own = []string{"Authorization", "X-Api-Key"}

// secretOfCove reports whether a header holds a key of Cove's in one of its forms.
func secretOfCove(value string) bool {
	for _, prefix := range []string{"cove_", "e2b_", "msb_"} {
		if strings.Contains(value, prefix) {
			return true
		}
	}
	return false
}

// rewrite makes the request that the program gets.
func (v *visit) rewrite(p *httputil.ProxyRequest) {
	head := p.Out.Header
	p.Out.URL.Scheme, p.Out.URL.Host = "http", "127.0.0.1:"+strconv.Itoa(v.at.port)
	p.Out.URL.RawQuery = withoutTicket(p.In.URL.RawQuery)
	p.Out.Host = p.In.Host // what it compares an Origin with
	for _, name := range credentials {
		if v.cfg.Open == nil || !slices.Contains(own, name) || slices.ContainsFunc(head.Values(name), secretOfCove) {
			head.Del(name)
		}
	}
	for name := range head {
		if strings.HasPrefix(name, "X-Forwarded-") {
			head.Del(name)
		}
	}
	head.Set("X-Forwarded-Host", p.In.Host)
	head.Set("X-Forwarded-Proto", "http")
	if v.cfg.Secure {
		head.Set("X-Forwarded-Proto", "https")
	}
	if up := head.Get("Upgrade"); up != "" && !strings.EqualFold(up, "websocket") {
		head.Del("Upgrade")
		head.Del("Connection")
	}
	ownCookies(head)
}

// ours reports whether a cookie of this name is Cove's.
func ours(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(name, "__host-"), "__secure-"), "cove_")
}

// ownCookies leaves the cookies that are the program's own.
func ownCookies(head http.Header) {
	var kept []string
	for _, line := range head.Values("Cookie") {
		for pair := range strings.SplitSeq(line, ";") {
			pair = strings.TrimSpace(pair)
			if name, _, _ := strings.Cut(pair, "="); pair != "" && !ours(name) {
				kept = append(kept, pair)
			}
		}
	}
	head.Del("Cookie")
	if len(kept) > 0 {
		head.Set("Cookie", strings.Join(kept, "; "))
	}
}

// farReaching are the headers of an answer that would count beyond its own origin,
// or after it: for other hosts of the domain, other ports, or the next visit.
var farReaching = []string{
	"Service-Worker-Allowed", "Strict-Transport-Security", "Public-Key-Pins", "Clear-Site-Data", "Alt-Svc", "Nel", "Report-To", "Origin-Agent-Cluster",
}

// tame makes the answer that the browser gets.
func (v *visit) tame(resp *http.Response) error {
	head := resp.Header
	confine(head)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Origin-Agent-Cluster", "?1")                // no page can join those of another host
	if resp.StatusCode != http.StatusSwitchingProtocols { // whose body is a connection
		resp.Body = &trailed{resp.Body, resp}
	}
	return nil
}

// confine takes what reaches too far out of the headers of an answer.
func confine(head http.Header) {
	for _, name := range farReaching {
		head.Del(name)
	}
	cookies := head.Values("Set-Cookie")
	head.Del("Set-Cookie")
	for _, line := range cookies {
		if harmless(line) {
			head.Add("Set-Cookie", line)
		}
	}
}

// trailed is a body that headers may stand behind. They are there when it ends.
type trailed struct {
	io.ReadCloser

	resp *http.Response
}

// Read implements [io.Reader].
func (t *trailed) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err != nil {
		confine(t.resp.Trailer)
	}
	return n, err
}

// harmless reports whether a Set-Cookie is for its own host alone and not Cove's.
func harmless(line string) bool {
	// A cookie without a name is sent as its value, which may look like one with.
	name, _, _ := strings.Cut(strings.TrimLeft(line, "= \t"), "=")
	if ours(name) {
		return false
	}
	first := true
	for part := range strings.SplitSeq(line, ";") {
		attribute, _, _ := strings.Cut(part, "=")
		if !first && strings.EqualFold(strings.TrimSpace(attribute), "domain") {
			return false
		}
		first = false
	}
	return true
}

// blame says why there is no answer.
func (v *visit) blame(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
	case errors.Is(cause, errQuiet):
		return cove.Wrap(cove.Timeout, err, "the program on port %d did not answer within %s", v.at.port, v.cfg.Quiet)
	case errors.Is(cause, cove.Unavailable): // the server ends
		return cause
	case errors.Is(cause, context.Canceled):
		return cove.Wrap(cove.Canceled, err, "the client went away")
	default:
		return cove.Wrap(cove.Unauthenticated, err, "the link is over").Remedy("ask for a new one")
	}
	return cove.Wrap(cove.Unavailable, err, "the program on port %d does not answer in HTTP, or broke off", v.at.port)
}
