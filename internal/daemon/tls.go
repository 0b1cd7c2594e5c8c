//go:build !lean

package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
)

// maxPEM bounds the file of a certificate and that of its key.
const maxPEM = 1 << 20

// certificate is what the server shows who it is with. It is read again when
// its files have changed, so that a renewed one needs no restart. It is safe for
// concurrent use.
type certificate struct {
	cert, key string // files
	logger    *slog.Logger

	mu   sync.Mutex
	pair *tls.Certificate // guarded by mu
	seen [2]stamp         // guarded by mu; of the files that were read last, good or not
}

// stamp tells one state of a file from another.
type stamp struct {
	modified time.Time
	size     int64
}

// withTLS returns l with TLS, if the settings have a certificate.
func (s *server) withTLS(l net.Listener) (net.Listener, error) {
	if s.cfg.Server.TLSCert == "" {
		return l, nil
	}
	c, err := openCertificate(s.cfg.Server, s.Logger)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(l, s.tlsConfig(c.current)), nil
}

// openCertificate reads the certificate of the settings.
func openCertificate(cfg config.Server, logger *slog.Logger) (*certificate, error) {
	c := &certificate{cert: cfg.TLSCert, key: cfg.TLSKey, logger: logger}
	c.seen = c.stamps()
	var err error
	c.pair, err = c.load()
	return c, err
}

// tlsConfig is how the server speaks TLS. Connections that are handed over, and bodies
// that go both ways at once, are HTTP/1.1, and HTTP/2 has neither; so only the hosts of
// E2B's domain, whose clients want it, have the other one.
func (s *server) tlsConfig(current func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	usual := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: current}
	if s.domain == "" {
		return usual
	}
	both := usual.Clone()
	both.NextProtos = []string{"h2", "http/1.1"}
	outer := usual.Clone()
	outer.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if below(hello.ServerName, s.domain) {
			return both, nil
		}
		return usual, nil
	}
	return outer
}

func (c *certificate) stamps() (s [2]stamp) {
	for i, name := range []string{c.cert, c.key} {
		if info, err := os.Stat(name); err == nil {
			s[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return s
}

// load reads both files. An error names the setting that is wrong.
func (c *certificate) load() (*tls.Certificate, error) {
	cert, err := readPEM("COVE_TLS_CERT", c.cert, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	key, err := readPEM("COVE_TLS_KEY", c.key, "")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err == nil {
		return &pair, nil
	}
	if block, _ := pem.Decode(cert); block != nil {
		if _, bad := x509.ParseCertificate(block.Bytes); bad != nil {
			return nil, cove.InvalidField("COVE_TLS_CERT", "%s holds no certificate that can be read; write it anew", c.cert)
		}
	}
	return nil, cove.InvalidField("COVE_TLS_KEY", "%s is not the private key of the certificate in %s; set both to files of one pair", c.key, c.cert)
}

// readPEM reads a file that must hold a block of a kind, if that is not "".
func readPEM(setting, name, kind string) ([]byte, error) {
	f, err := os.Open(name) //nolint:gosec // the operator names it
	var data []byte
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(f, maxPEM))
		_ = f.Close() // only read
	}
	if err != nil {
		reason := err
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			reason = pe.Err
		}
		return nil, cove.InvalidField(setting, "%s cannot be read (%s); set it to a file in PEM that this user may read", name, reason)
	}
	if block, _ := pem.Decode(data); block == nil || kind != "" && block.Type != kind {
		return nil, cove.InvalidField(setting, "%s is not a file in PEM, which begins with -----BEGIN", name)
	}
	return data, nil
}

// current returns the certificate for a connection. A new one that cannot be
// used is logged, and the old one stays.
func (c *certificate) current(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.stamps()
	if seen == c.seen {
		return c.pair, nil
	}
	c.seen = seen
	pair, err := c.load()
	if err != nil {
		c.logger.ErrorContext(hello.Context(), "the new certificate cannot be used, the old one stays", slog.String("error", cove.MessageOf(err)))
		return c.pair, nil
	}
	c.pair = pair
	c.logger.InfoContext(hello.Context(), "the certificate was read again")
	return c.pair, nil
}

// warnPlain says that keys travel in the open, where they do.
func (s *server) warnPlain(ctx context.Context, l net.Listener) {
	if s.cfg.Server.TLSCert != "" {
		return
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		s.Logger.WarnContext(ctx, "keys travel in the open: set COVE_TLS_CERT and COVE_TLS_KEY, or put a proxy with TLS in front", slog.String("address", tcp.String()))
	}
}
