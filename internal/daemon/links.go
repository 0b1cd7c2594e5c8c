//go:build !lean

package daemon

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/cluster"
	"github.com/cove-sandbox/cove/internal/preview"
	"github.com/cove-sandbox/cove/internal/ticket"
)

// origins are where the links of a server lead.
type origins struct {
	public  *url.URL // the API and the console; nil where nobody can reach them by a URL
	preview *url.URL // what the hosts of previews are put before; nil where there are none
}

// openLinks reads the key of links and finds out where they lead. The doors are
// open already. The key of a cluster comes later: see joinLinks.
func (s *server) openLinks() (err error) {
	if !s.clustered() {
		if s.book, err = ticket.Open(s.home.linkKey(), s.home.signedOut()); err != nil {
			return err
		}
		s.desk = ticket.NewDesk(s.book, s.whoIs)
	}
	if s.tcp == nil {
		return nil
	}
	text := s.cfg.Server.PublicURL
	if text == "" {
		text = reachable(s.address())
	}
	public, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil {
		return cove.InvalidField("COVE_PUBLIC_URL", "is not a URL; write one such as https://cove.example.com")
	}
	if s.domain != "" && (below(public.Hostname(), s.domain) || strings.EqualFold(public.Hostname(), hostOf(s.domain))) {
		return cove.InvalidField("COVE_E2B_DOMAIN", "%s is where the server itself is, or above it; sandboxes need a domain of their own", hostOf(s.domain))
	}
	s.origins.public = public
	domain := s.cfg.Preview.Domain
	switch {
	case domain != "":
		if strings.EqualFold(public.Hostname(), domain) {
			return cove.InvalidField("COVE_PREVIEW_DOMAIN", "%s is where the server itself is; previews need a domain of their own", domain)
		}
		at := *public
		at.Path, at.Host = "/", domain
		if port := public.Port(); port != "" {
			at.Host = net.JoinHostPort(domain, port)
		}
		s.origins.preview = &at
	case s.previews != nil:
		_, port, err := net.SplitHostPort(s.previews.Addr().String())
		if err != nil {
			return cove.InvalidField("COVE_PREVIEW_ADDR", "%s has no port", s.previews.Addr())
		}
		s.origins.preview = &url.URL{Scheme: "http", Host: net.JoinHostPort("localhost", port), Path: "/"}
	}
	return nil
}

// joinLinks makes links those of the cluster, if this is a node of one: good at every
// node, and used once in all. It needs the directory, and comes before anybody is
// answered.
func (s *server) joinLinks() error {
	if !s.clustered() {
		return nil
	}
	key, err := cluster.Derive(s.cfg.Redis.Secret.Reveal(), "links")
	if err != nil {
		return err
	}
	s.book = ticket.Join(key, s.directory)
	s.desk = ticket.NewDesk(s.book, s.whoIs)
	return nil
}

// reachable returns an address that a browser on this machine can open: a server
// that listens on all addresses is at one of them.
func reachable(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("localhost", u.Port())
	}
	return u.String()
}

func (h Home) linkKey() string { return filepath.Join(h.dir, "link.key") }

func (h Home) signedOut() string { return filepath.Join(h.dir, "signed-out") }

// secure reports whether browsers come over https.
func secure(u *url.URL) bool { return u != nil && u.Scheme == "https" }

// whoIs returns the principal of a name that a ticket was made for, as it is now.
// Users of this machine have no key that could be revoked: COVE_HOME is theirs.
func (s *server) whoIs(ctx context.Context, name string) (cove.Principal, func(), error) {
	if strings.HasPrefix(name, osUser) {
		return osPrincipal(name), func() {}, nil
	}
	return s.keys.ByID(ctx, cove.ID(name))
}

// sign makes the URL of a grant.
func (s *server) sign(g cove.Grant) (string, error) {
	if s.origins.public == nil {
		return "", cove.Errorf(cove.Unsupported, "this server listens on its socket alone, where no URL leads").
			Remedy("run cove serve in its place")
	}
	to := *s.origins.public
	name := "ticket"
	switch g.Kind {
	case cove.GrantDownload, cove.GrantUpload:
		to.Path += "/api/signed/file"
	case cove.GrantLogin:
		to.Path += "/login"
	case cove.GrantPort:
		if s.origins.preview == nil {
			return "", cove.Errorf(cove.Unsupported, "previews have no origin of their own here").
				Remedy("set COVE_PREVIEW_ADDR, such as 127.0.0.1:8001, or COVE_PREVIEW_DOMAIN, and start the server again")
		}
		to = *s.origins.preview
		to.Host = preview.Host(g.Port, g.Session, to.Host)
		name = "cove_ticket"
	case cove.GrantConsole:
		return "", cove.Errorf(cove.Internal, "a browser that is signed in has no URL")
	}
	to.RawQuery = url.Values{name: {s.book.Issue(g)}}.Encode()
	return to.String(), nil
}

// loginURL returns a link that signs the operator's browser in as the first key,
// or "" where there is none that could.
func (s *server) loginURL(ctx context.Context) string {
	if s.origins.public == nil {
		return ""
	}
	secret, err := os.ReadFile(s.home.AdminKey())
	if err != nil {
		s.Logger.WarnContext(ctx, "no login link", slog.Any("error", err))
		return ""
	}
	p, done, err := s.keys.Authenticate(ctx, strings.TrimSpace(string(secret)))
	defer done()
	if err == nil {
		var l *cove.Link
		if l, err = s.parts.engine.As(p).Links().Login(ctx, 0); err == nil {
			return l.URL
		}
	}
	s.Logger.WarnContext(ctx, "no login link", slog.Any("error", err))
	return ""
}
