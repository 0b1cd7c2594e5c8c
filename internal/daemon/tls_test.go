package daemon_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// issue writes a certificate for 127.0.0.1 with a serial number, and its key.
func issue(t *testing.T, certFile, keyFile string, serial int64) *x509.Certificate {
	t.Helper()
	return issueNamed(t, certFile, keyFile, serial)
}

// issueNamed is issue for hosts, too.
func issueNamed(t *testing.T, certFile, keyFile string, serial int64, hosts ...string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "cove"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: hosts, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, certFile, "CERTIFICATE", der)
	writePEM(t, keyFile, "PRIVATE KEY", secret)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// pairOf returns the settings of a server with a certificate.
func pairOf(t *testing.T) (cfg config.Config, certFile, keyFile string, cert *x509.Certificate) {
	t.Helper()
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	cert = issue(t, certFile, keyFile, 1)
	return settings(t, "COVE_TLS_CERT", certFile, "COVE_TLS_KEY", keyFile), certFile, keyFile, cert
}

func trusting(certs ...*x509.Certificate) *tls.Config {
	pool := x509.NewCertPool()
	for _, c := range certs {
		pool.AddCert(c)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func TestTLS(t *testing.T) {
	cfg, _, _, cert := pairOf(t)
	r, end := serve(t, cfg, daemon.Options{})
	defer end()
	if !strings.HasPrefix(r.URL, "https://127.0.0.1:") {
		t.Fatalf("the server is at %s", r.URL)
	}
	key, err := os.ReadFile(r.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(r.URL, strings.TrimSpace(string(key)), client.WithTLSConfig(trusting(cert)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	// Input and output at once, and a connection that is handed over, need HTTP/1.1.
	x, err := c.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "cat", Stdin: strings.NewReader("both ways")})
	if err != nil || string(x.Stdout.Data) != "both ways" {
		t.Errorf("%+v %v", x, err)
	}
	if _, err := c.Ports(s.ID).Dial(t.Context(), 9); !errors.Is(err, cove.Unavailable) {
		t.Errorf("a port where nobody listens: %v", err)
	}

	stranger, err := client.New(r.URL, "k", client.WithTLSConfig(trusting()))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := stranger.Sessions().Get(t.Context(), s.ID); err == nil {
		t.Error("a client that trusts nobody went on")
	}
	plain := dial(t, strings.Replace(r.URL, "https", "http", 1), "k")
	if _, err := plain.Sessions().Get(t.Context(), s.ID); err == nil {
		t.Error("the address answers without TLS")
	}
	conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: trusting(cert).RootCAs, NextProtos: []string{"h2", "http/1.1"}}}).DialContext(t.Context(), "tcp", strings.TrimPrefix(r.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("the server speaks %q", got)
	}
	if _, err := (&tls.Dialer{Config: &tls.Config{RootCAs: trusting(cert).RootCAs, MaxVersion: tls.VersionTLS11}}).DialContext(t.Context(), "tcp", strings.TrimPrefix(r.URL, "https://")); err == nil {
		t.Error("the server speaks TLS 1.1")
	}
}

// serial is the number of the certificate that a server shows.
func serial(t *testing.T, url string, trusted *tls.Config) string {
	t.Helper()
	conn, err := (&tls.Dialer{Config: trusted}).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// TestCertificateIsReadAgain: a renewed certificate counts without a restart,
// and half of a new pair changes nothing.
func TestCertificateIsReadAgain(t *testing.T) {
	cfg, certFile, keyFile, first := pairOf(t)
	r, end := serve(t, cfg, daemon.Options{})
	defer end()
	other := t.TempDir()
	second := issue(t, filepath.Join(other, "cert"), filepath.Join(other, "key"), 2)
	trusted := trusting(first, second)
	if got := serial(t, r.URL, trusted); got != "1" {
		t.Errorf("the certificate is number %s", got)
	}
	if err := os.Rename(filepath.Join(other, "cert"), certFile); err != nil {
		t.Fatal(err)
	}
	if got := serial(t, r.URL, trusted); got != "1" {
		t.Errorf("with half of a new pair, the certificate is number %s", got)
	}
	if err := os.Rename(filepath.Join(other, "key"), keyFile); err != nil {
		t.Fatal(err)
	}
	if got := serial(t, r.URL, trusted); got != "2" {
		t.Errorf("with a new pair, the certificate is number %s", got)
	}
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	if got := serial(t, r.URL, trusted); got != "2" {
		t.Errorf("without a key, the certificate is number %s", got)
	}
}

// TestCertificatesThatDoNotServe: the start ends with the setting's name, and
// leaves nothing behind.
func TestCertificatesThatDoNotServe(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(certFile, keyFile string)
		want  string
	}{
		"no certificate":      {func(cert, _ string) { _ = os.Remove(cert) }, "COVE_TLS_CERT: "},
		"no key":              {func(_, key string) { _ = os.Remove(key) }, "COVE_TLS_KEY: "},
		"no PEM":              {func(cert, _ string) { _ = os.WriteFile(cert, []byte("x"), 0o600) }, "COVE_TLS_CERT: "},
		"no PEM in the key":   {func(_, key string) { _ = os.WriteFile(key, []byte("x"), 0o600) }, "COVE_TLS_KEY: "},
		"swapped":             {func(cert, key string) { _ = os.Rename(key, cert) }, "COVE_TLS_CERT: "},
		"another one's key":   {func(cert, key string) { issue(t, cert+"2", key, 2) }, "is not the private key of the certificate"},
		"broken certificate":  {func(cert, _ string) { writePEM(t, cert, "CERTIFICATE", []byte("x")) }, "COVE_TLS_CERT: "},
		"a directory":         {func(cert, _ string) { _, _ = os.Remove(cert), os.Mkdir(cert, 0o700) }, "COVE_TLS_CERT: "},
		"certificate for key": {func(cert, key string) { data, _ := os.ReadFile(cert); _ = os.WriteFile(key, data, 0o600) }, "COVE_TLS_KEY: "},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, cert, key, _ := pairOf(t)
			c.spoil(cert, key)
			err := daemon.Serve(t.Context(), cfg, daemon.Options{Logger: slog.New(slog.DiscardHandler)})
			if !errors.Is(err, cove.Invalid) || !strings.Contains(cove.MessageOf(err), c.want) || !strings.Contains(cove.MessageOf(err), "COVE_TLS_") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestPlainAddressIsWarnedOf: keys that travel in the open are worth a line.
func TestPlainAddressIsWarnedOf(t *testing.T) {
	cfg, certFile, keyFile, _ := pairOf(t)
	for name, c := range map[string]struct {
		pairs []string
		warns bool
	}{
		"loopback": {[]string{"COVE_ADDR", "127.0.0.1:0"}, false},
		"all":      {[]string{"COVE_ADDR", "0.0.0.0:0"}, true},
		"all, TLS": {[]string{"COVE_ADDR", "0.0.0.0:0", "COVE_TLS_CERT", certFile, "COVE_TLS_KEY", keyFile}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg = settings(t, c.pairs...)
			ctx, cancel := context.WithCancel(t.Context())
			pipe, w := io.Pipe()
			said := make(chan string, 1)
			go func() { data, _ := io.ReadAll(pipe); said <- string(data) }()
			err := daemon.Serve(ctx, cfg, daemon.Options{Logger: slog.New(slog.NewTextHandler(w, nil)), Ready: func(daemon.Ready) { cancel() }})
			_ = w.Close()
			if text := <-said; err != nil || strings.Contains(text, "keys travel in the open") != c.warns {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}

// TestTooManyConnections: one more than a remote may have is closed, those
// that are open go on, and the log says which setting it is.
func TestTooManyConnections(t *testing.T) {
	pipe, w := io.Pipe()
	lines := make(chan string, 100)
	go func() {
		data := make([]byte, 64<<10)
		for {
			n, err := pipe.Read(data)
			if err != nil {
				return
			}
			lines <- string(data[:n])
		}
	}()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan daemon.Ready, 1), make(chan error, 1)
	go func() {
		ended <- daemon.Serve(ctx, settings(t, "COVE_CONNECTIONS_PER_REMOTE", "2"), daemon.Options{
			Logger: slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn})), Ready: func(r daemon.Ready) { ready <- r },
		})
	}()
	r := <-ready
	var conns []net.Conn
	for range 4 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(r.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	for _, conn := range conns[2:] {
		if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("one too many got %d bytes", n)
		}
	}
	if line := <-lines; !strings.Contains(line, "COVE_CONNECTIONS_PER_REMOTE") || !strings.Contains(line, "remote=127.0.0.1") {
		t.Errorf("the log says %s", line)
	}
	for _, conn := range conns[:2] {
		if _, err := io.WriteString(conn, "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
			t.Error(err)
		}
		if data, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(data), "HTTP/1.1 200") {
			t.Errorf("%q %v", data, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
