package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Bounds of what is read.
const (
	headPatience = 10 * time.Second // for the beginning of a connection and the head of a request
	maxHead      = 64 << 10
	maxStreams   = 64 // requests at once in one connection
)

// read serves a connection as HTTP and puts the secrets of its host in.
func (l *link) read(p *policy) {
	c := &readConn{Conn: l.inside, link: l, rate: int64(p.limits.Rate), done: make(chan struct{})}
	if err := c.peek(); err != nil {
		l.end("nothing was said")
		return
	}
	transport := l.transport(p)
	defer transport.CloseIdleConnections()
	l.proxy = l.reverseProxy(transport)
	conn := net.Conn(c)
	if c.first[0] == tlsHandshake {
		if p.signer == nil {
			l.deny("the host has a secret, and there is no authority for its certificate")
			return
		}
		l.secure = true
		conn = tls.Server(c, l.tls(p.signer))
	}
	if !l.g.handoff.give(l.ctx, conn) {
		return
	}
	select {
	case <-c.done:
	case <-l.ctx.Done():
	}
}

// tlsHandshake is the first byte of every connection with TLS.
const tlsHandshake = 0x16

// tls is our side towards the inside.
func (l *link) tls(s *signer) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if name, ok := cleanName(hello.ServerName); hello.ServerName != "" && (!ok || name != l.target.name) {
				l.g.denyRequest(l, hello.ServerName)
				return nil, refusal(misdirected)
			}
			return s.certificateFor(l.target.name)
		},
	}
}

// transport is our side towards the server. Each connection from inside has its
// own: none sees what another one has left open.
func (l *link) transport(p *policy) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			// The transport's own context does not end with the connection.
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(l.ctx, cancel)()
			return l.dial(ctx, l.g.policy.Load())
		},
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: l.g.world.Roots(), ServerName: l.target.name},
		TLSHandshakeTimeout: p.limits.Dial, ResponseHeaderTimeout: p.limits.Idle, ExpectContinueTimeout: time.Second,
		DisableCompression: true, ForceAttemptHTTP2: true, MaxConnsPerHost: 8, MaxResponseHeaderBytes: 1 << 20,
		IdleConnTimeout: time.Minute,
	}
}

func (l *link) reverseProxy(t *http.Transport) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport: t, FlushInterval: -1, ErrorLog: silent,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", l.authority()
			if l.secure {
				r.Out.URL.Scheme = "https"
			}
			r.Out.Host = l.authority()
			l.g.policy.Load().inject(r.Out.Header, l.target, l.secure)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			l.note(err)
			w.Header().Set("Connection", "close")
			http.Error(w, "The server cannot be reached.", http.StatusBadGateway)
		},
	}
}

// inject sets the headers of a host. Where two secrets have the same header, the
// first one counts. Without TLS, only secrets that may be read on the way are set.
func (p *policy) inject(h http.Header, t target, secure bool) {
	done := map[string]bool{}
	for i := range p.secrets {
		s := &p.secrets[i]
		key := http.CanonicalHeaderKey(s.header)
		if s.goes(t, secure) && !done[key] {
			done[key] = true
			h[key] = []string{s.value}
		}
	}
}

// note keeps why a server could not be reached.
func (l *link) note(err error) {
	why := "the server cannot be reached" + because(err)
	f, failed := errors.AsType[failure](err)
	r, refused := errors.AsType[refusal](err)
	var cert *tls.CertificateVerificationError
	switch {
	case failed:
		why = f.why
	case refused:
		why = r.Error()
	case errors.As(err, &cert):
		why = "the server's certificate is not valid"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == "" && !l.ended {
		l.why = why
	}
}

// clearText is said of a request that would show a secret to all on its way.
const clearText = "the host's credential is sent over https only"

// refuseClear keeps that a request in clear text was refused. The connection is
// left open for the answer.
func (l *link) refuseClear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.why, l.refused = clearText, true
	}
}

// authority is the host of a request as it is written, with a port that is not
// the usual one.
func (l *link) authority() string {
	if usual := uint16(80); !l.secure && l.target.port == usual || l.secure && l.target.port == securePort {
		return l.target.name
	}
	return net.JoinHostPort(l.target.name, strconv.Itoa(int(l.target.port)))
}

// misdirected is said of a request that names another host than its connection.
const misdirected = "the request is for another host than the connection"

// named reports whether a request is for the host of the connection.
func (l *link) named(host string) bool {
	name, port, has := strings.Cut(host, ":")
	clean, ok := cleanName(name)
	return ok && clean == l.target.name && (!has || port == strconv.Itoa(int(l.target.port)))
}

// forward answers one request.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request) {
	l, ok := r.Context().Value(linkKey{}).(*link)
	if !ok {
		http.Error(w, "No connection.", http.StatusInternalServerError)
		return
	}
	refuse := func(status int, text string) {
		w.Header().Set("Connection", "close")
		http.Error(w, text, status)
	}
	switch {
	case !l.named(r.Host) || r.URL.Host != "" && !l.named(r.URL.Host):
		g.denyRequest(l, r.Host)
		refuse(http.StatusMisdirectedRequest, "This connection is for "+l.target.name+" alone.")
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		// One leads elsewhere, the other one shows what we have put in.
		refuse(http.StatusMethodNotAllowed, "This method is not passed on.")
	case !l.secure && !g.policy.Load().readable(l.target):
		l.refuseClear()
		refuse(http.StatusForbidden, "The credential of "+l.target.name+" is sent over https only. Use https.")
	default:
		l.proxy.ServeHTTP(w, r)
	}
}

// denyRequest writes down a request for another host.
func (g *Gateway) denyRequest(l *link, host string) {
	g.journal.add(cove.Connection{At: time.Now(), Protocol: "tcp", Host: printable(host), Port: int(l.target.port), Why: misdirected})
}

type linkKey struct{}

// server is what reads connections.
func (g *Gateway) server() *http.Server {
	return &http.Server{
		Handler: http.HandlerFunc(g.forward), ReadHeaderTimeout: headPatience, MaxHeaderBytes: maxHead, ErrorLog: silent,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if t, ok := c.(*tls.Conn); ok {
				c = t.NetConn()
			}
			if r, ok := c.(*readConn); ok {
				return context.WithValue(ctx, linkKey{}, r.link)
			}
			return ctx
		},
	}
}

// silent is for what others log: it would be about requests, and those have
// secrets in them.
var silent = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
