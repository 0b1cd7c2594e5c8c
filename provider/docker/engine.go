//go:build linux

package docker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
)

// How long the engine may take for a thing before it counts as gone.
const (
	dialPatience   = 2 * time.Second
	askPatience    = 2 * time.Second // for what it answers from memory
	doPatience     = 30 * time.Second
	makePatience   = 2 * time.Minute // to make, start or remove a container
	removePatience = time.Minute
)

// engine is a connection to one.
type engine struct {
	*client.Client

	host  string // as it is shown
	local bool   // its files are this machine's
	plain bool   // spoken to across a network without TLS
}

// connect makes a client; nothing is dialled yet.
func connect(cfg Config) (*engine, error) {
	host := cfg.Host
	if host == "" {
		host = DefaultHost
	}
	scheme, address, ok := strings.Cut(host, "://")
	if !ok || address == "" {
		return nil, cove.InvalidField("DOCKER_HOST", "%.200q is not an address; write one such as unix:///var/run/docker.sock or tcp://host:2376", host)
	}
	e := &engine{host: host, local: scheme == "unix"}
	// The client takes a transport with TLS settings as one that wants TLS, and copying
	// one that might speak HTTP/2 gives it some.
	transport := &http.Transport{
		MaxIdleConns: 16, MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	secure := scheme == "https" || cfg.TLSVerify || cfg.CertPath != ""
	switch scheme {
	case "unix":
		if cfg.TLSVerify {
			return nil, cove.InvalidField("DOCKER_TLS_VERIFY", "is on and %s is a local socket, which has no certificate; remove one of them", host)
		}
	case "tcp", "http", "https":
		u, err := url.Parse("tcp://" + address)
		if err != nil || u.Host == "" {
			return nil, cove.InvalidField("DOCKER_HOST", "%.200q is not an address; write one such as tcp://host:2376", host)
		}
		host = "tcp://" + address
		e.plain = !secure && !isLoopback(u.Hostname())
		if secure {
			if transport.TLSClientConfig, err = certificates(cfg.CertPath, u.Hostname()); err != nil {
				return nil, err
			}
		}
	default:
		return nil, cove.InvalidField("DOCKER_HOST", "%.20q cannot be spoken here; use unix, tcp, http or https", scheme).
			Remedy("forward the engine's socket to this machine, such as with ssh -L, and name that")
	}
	dialer := &net.Dialer{Timeout: dialPatience}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if scheme == "unix" {
			network, addr = scheme, address
		}
		return dialer.DialContext(ctx, network, addr)
	}
	own := &http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}
	c, err := client.New(client.WithHTTPClient(own), client.WithHost(host), client.WithDialContext(dial), client.WithUserAgent("cove"))
	if err != nil {
		return nil, cove.Wrap(cove.Invalid, err, "DOCKER_HOST: %.200q cannot be used", host).With("field", "DOCKER_HOST")
	}
	e.Client = c
	return e, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// certificates reads who vouches for the engine, and who we are.
func certificates(dir, server string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: server}
	if dir == "" {
		return c, nil
	}
	unusable := func(err error, file string) error {
		return cove.Wrap(cove.Unavailable, err, "DOCKER_CERT_PATH: %s cannot be used: %s", file, reasonOf(err)).Reason(cove.ReasonConfiguration).
			Remedy("put ca.pem, cert.pem and key.pem of the engine into the directory that DOCKER_CERT_PATH names")
	}
	ca := filepath.Join(dir, "ca.pem")
	pem, err := os.ReadFile(ca) //nolint:gosec // the operator names it
	if err != nil {
		return nil, unusable(err, ca)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, unusable(errors.New("it holds no certificate"), ca)
	}
	cert := filepath.Join(dir, "cert.pem")
	pair, err := tls.LoadX509KeyPair(cert, filepath.Join(dir, "key.pem"))
	switch {
	case err == nil:
		c.Certificates = []tls.Certificate{pair}
	case !errors.Is(err, os.ErrNotExist): // an engine may ask for none
		return nil, unusable(err, cert)
	}
	return c, nil
}

func reasonOf(err error) string {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// close lets go of connections that nobody uses.
func (e *engine) close() { _ = e.Close() }

// for a call that ends with d, unless the caller's own time is shorter.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// last is for what must be cleaned up, whatever became of the caller.
func last(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), removePatience)
}
