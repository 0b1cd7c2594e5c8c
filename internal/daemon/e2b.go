//go:build !lean

package daemon

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/cluster"
	"github.com/cove-sandbox/cove/internal/e2bapi"
	"github.com/cove-sandbox/cove/internal/preview"
	"github.com/cove-sandbox/cove/internal/telemetry"
)

// What --dev-tls sets where nothing else is said.
const (
	devAddr   = "127.0.0.1:8443"
	devDomain = "cove.localhost"
)

// listenE2B finds out the domain of E2B's clients, and opens its door where it has one
// of its own.
func (s *server) listenE2B(ctx context.Context) error {
	if s.OnDemand {
		return nil
	}
	addr := s.cfg.Faces.E2BAddr
	s.domain = s.cfg.Faces.E2BDomain
	if s.DevTLS {
		if s.cfg.Server.TLSCert != "" {
			return cove.InvalidField("COVE_TLS_CERT", "is set, and --dev-tls makes certificates of its own; leave one of them out")
		}
		if addr == "" {
			addr = devAddr
		}
		if s.domain == "" {
			s.domain = devDomain
		}
	}
	if err := s.checkDomain(); err != nil || addr == "" {
		return err
	}
	if s.domain == "" {
		return cove.InvalidField("COVE_E2B_ADDR", "is for COVE_E2B_DOMAIN, which is not set; set both")
	}
	l, err := listenTCP(ctx, "COVE_E2B_ADDR", addr)
	if err != nil {
		return err
	}
	s.e2bDoor = s.bound(l)
	s.domain = ported(s.domain, addr, l.Addr(), s.DevTLS)
	return s.secureE2B()
}

// ported is a domain with the port of its door, where that is all a client could use
// and the settings did not say it.
func ported(domain, addr string, at net.Addr, always bool) string {
	if _, _, err := net.SplitHostPort(domain); err == nil {
		return domain
	}
	_, port, err := net.SplitHostPort(at.String())
	if err != nil || port == "443" || !always && !strings.HasSuffix(addr, ":0") {
		return domain
	}
	return net.JoinHostPort(domain, port)
}

// secureE2B puts TLS in front of the domain's own door.
func (s *server) secureE2B() error {
	var current func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	switch {
	case s.DevTLS:
		a, err := openAuthority(s.home.dir, hostOf(s.domain))
		if err != nil {
			return err
		}
		s.authority, current = a, a.current
	case s.cfg.Server.TLSCert != "":
		c, err := openCertificate(s.cfg.Server, s.Logger)
		if err != nil {
			return err
		}
		current = c.current
	default:
		return cove.InvalidField("COVE_E2B_ADDR", "speaks HTTPS, and there is no certificate; set COVE_TLS_CERT and COVE_TLS_KEY, or start with --dev-tls")
	}
	s.e2bDoor = tls.NewListener(s.e2bDoor, s.tlsConfig(current))
	return nil
}

// checkDomain refuses a domain that is somebody else's, and a certificate that is not
// for it.
func (s *server) checkDomain() error {
	if s.domain == "" {
		return nil
	}
	mine, theirs := hostOf(s.domain), s.cfg.Preview.Domain
	if theirs != "" && (mine == theirs || below(mine, theirs) || below(theirs, mine)) {
		return cove.InvalidField("COVE_E2B_DOMAIN", "%s and COVE_PREVIEW_DOMAIN are one, or one is below the other; each needs a domain of its own", mine)
	}
	if s.cfg.Server.TLSCert == "" {
		return nil
	}
	c, err := openCertificate(s.cfg.Server, s.Logger)
	if err != nil {
		return err
	}
	leaf, err := leafOf(c.pair)
	if err == nil {
		err = leaf.VerifyHostname("api." + mine)
	}
	if err != nil {
		return cove.Wrap(cove.Invalid, err, "COVE_TLS_CERT: the certificate is not for the hosts of COVE_E2B_DOMAIN").
			With("field", "COVE_TLS_CERT").Remedy("get one for *.%s", mine)
	}
	return nil
}

// hostOf returns a domain without its port.
func hostOf(domain string) string {
	if host, _, err := net.SplitHostPort(domain); err == nil {
		return host
	}
	return domain
}

// below reports whether a host is below a domain. Either may have a port.
func below(host, domain string) bool {
	name := strings.TrimSuffix(strings.ToLower(hostOf(host)), ".")
	return strings.HasSuffix(name, "."+strings.ToLower(hostOf(domain)))
}

// directed refuses requests over HTTP/2 for anybody but E2B's domain: a client may use
// the connection of one host for another, whose answers need HTTP/1.1.
func (s *server) directed(h http.Handler) http.Handler {
	if s.domain == "" {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor > 1 && !below(r.Host, s.domain) {
			http.Error(w, "this host does not speak HTTP/2", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// alone answers for E2B's domain and for nobody else.
func (s *server) alone(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !below(r.Host, s.domain) {
			http.Error(w, "this address is for hosts below "+s.domain, http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// e2bFace is what E2B's clients find.
func (s *server) e2bFace() *e2bapi.Handler {
	cfg := e2bapi.Config{
		Platform: s.platform, Authenticate: s.keys.Authenticate, Owner: s.ownerOf, Key: s.whoIs, Holders: s.holders, Watch: s.watch.Follow,
		CodeTemplate: s.codeTemplate, Secrets: func(cove.Principal) []string { return slices.Sorted(maps.Keys(s.cfg.Secrets)) },
		Secret: s.book.Derive("e2b"), Domain: s.domain, Network: cove.NetworkMode(s.cfg.Faces.E2BNetwork), Policy: s.cfg.CommandPolicy,
		Begin: s.telemetry.Request, End: s.e2bAnswered, Logger: s.Logger, Authorize: s.parts.engine.Authorize, Bodies: s.bodies,
		Uploads: s.home.dir, Room: s.parts.engine.RoomOnDisk,
	}
	if s.cfg.Server.PublicURL != "" {
		cfg.Public = s.origins.public
	}
	if s.member != nil {
		cfg.Platform = s.member.Settled // who shows the token of a sandbox has no key for another cluster
		cfg.Mark, cfg.Elsewhere = cluster.Mark(s.cfg.NodeID), s.member.Pass
	}
	if s.domain != "" {
		cfg.Ports = s.openPorts(cfg.Secret)
	}
	return e2bapi.New(cfg)
}

// codeTemplate is that of clients of E2B's interpreter: the one with libraries for
// data, where it is ready.
func (s *server) codeTemplate() string {
	const data = "data"
	if slices.Contains(s.parts.templates.Names(), data) {
		return data
	}
	return ""
}

// e2bAnswered hands on how a request of an E2B client went.
func (s *server) e2bAnswered(ctx context.Context, e e2bapi.Ending) {
	method, route, ok := strings.Cut(e.Route, " ")
	if !ok {
		method, route = http.MethodPost, e.Route
	}
	s.telemetry.Answered(ctx, telemetry.Answer{Method: method, Route: route, Status: e.Status, Err: e.Err, Wall: e.Took})
}

// sessionOf returns the record of a session of anybody's.
func (s *server) sessionOf(ctx context.Context, id cove.ID) (*cove.Session, error) {
	rec, err := s.parts.store.GetSession(ctx, id)
	if err == nil && rec.State == cove.Ended {
		err = cove.Errorf(cove.NotFound, "the session has ended")
	}
	return rec, err
}

// ownerOf returns the caller that opened a session, as its key is now.
func (s *server) ownerOf(ctx context.Context, id cove.ID) (cove.Principal, func(), error) {
	rec, err := s.sessionOf(ctx, id)
	if err != nil {
		return cove.Principal{}, func() {}, err
	}
	return s.whoIs(ctx, rec.Owner)
}

// openPorts serves ports of sandboxes below E2B's domain: those of public sandboxes
// without a token, for the session's owner, and those of others for the caller that the
// traffic token names.
func (s *server) openPorts(secret []byte) http.Handler {
	return preview.New(preview.Config{
		Domain: hostOf(s.domain), Secure: true, Platform: s.platform, Logger: s.Logger, Refusal: portRefused,
		Open: func(ctx context.Context, id cove.ID, _ int, r *http.Request) (cove.Principal, func(), error) {
			rec, err := s.sessionOf(ctx, id)
			if err != nil {
				return cove.Principal{}, func() {}, err
			}
			if rec.Spec.PublicPorts {
				return s.whoIs(ctx, rec.Owner)
			}
			caller, ok := e2bapi.CallerOf(secret, "traffic", id, r.Header.Get("E2B-Traffic-Access-Token"))
			if !ok {
				return cove.Principal{}, func() {}, cove.Errorf(cove.Denied, "the ports of this sandbox are not public").
					Remedy("send its traffic access token in E2B-Traffic-Access-Token; create and connect give one to a key that holds exec")
			}
			return s.whoIs(ctx, caller)
		},
	})
}

// portRefused is what a client of a port reads where no program answers.
func portRefused(id cove.ID, port int, err error) (status int, contentType, text string) {
	answer := struct {
		ID      cove.ID `json:"sandboxId"`
		Message string  `json:"message"`
		Port    int     `json:"port,omitempty"`
		Code    int     `json:"code"`
	}{ID: id, Message: cove.MessageOf(err), Port: port, Code: http.StatusBadGateway}
	switch code := cove.CodeOf(err); {
	case code == cove.Denied || code == cove.Unauthenticated:
		answer.Code = http.StatusForbidden
	case code == cove.Exhausted:
		answer.Code = http.StatusTooManyRequests
	case code == cove.NotFound:
		answer.Message, answer.Port = "The sandbox was not found", 0
	}
	body, err := json.Marshal(answer)
	if err != nil {
		body = []byte("{}")
	}
	return answer.Code, "application/json", string(body)
}
