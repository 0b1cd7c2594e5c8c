//go:build linux

package docker_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/docker"
)

// strangers are addresses at which no engine can be had, and what is said of each.
func strangers() map[string]struct {
	make        func(t *testing.T) docker.Config
	why, remedy string
} {
	page := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html><body>It works!</body></html>")
	}
	serve := func(h http.HandlerFunc) func(t *testing.T) docker.Config {
		return func(t *testing.T) docker.Config {
			t.Helper()
			s := httptest.NewServer(h)
			t.Cleanup(s.Close)
			return docker.Config{Host: "tcp://" + s.Listener.Addr().String()}
		}
	}
	return map[string]struct {
		make        func(t *testing.T) docker.Config
		why, remedy string
	}{
		"nobody on the socket": {
			func(t *testing.T) docker.Config {
				t.Helper()
				return docker.Config{Host: "unix://" + filepath.Join(t.TempDir(), "none.sock")}
			},
			"Docker daemon not available", "Set SANDBOX_TYPE=local or start Docker daemon",
		},
		"nobody on the port": {
			func(t *testing.T) docker.Config {
				t.Helper()
				return docker.Config{Host: "tcp://127.0.0.1:1"}
			},
			"Docker daemon not available", "Set SANDBOX_TYPE=local or start Docker daemon",
		},
		"accepts and never answers": {
			func(t *testing.T) docker.Config {
				t.Helper()
				return docker.Config{Host: "unix://" + silent(t)}
			},
			"does not answer", "restart it",
		},
		"a page instead of an API":         {serve(page), "is not a Docker engine", "DOCKER_HOST"},
		"a page with the header of an API": {serve(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Api-Version", "1.41"); page(w, r) }), "is not a Docker engine", "DOCKER_HOST"},
		"another version": {
			serve(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.12") }),
			"another version of the API", "20.10",
		},
		"of another system": {
			serve(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Api-Version", "1.41")
				w.Header().Set("Content-Type", "application/json")
				switch {
				case strings.HasSuffix(r.URL.Path, "/version"):
					_, _ = io.WriteString(w, `{"Os":"windows"}`)
				case strings.HasSuffix(r.URL.Path, "/info"):
					_, _ = io.WriteString(w, `{"ID":"x","ServerVersion":"1"}`)
				}
			}),
			"windows", "Linux containers",
		},
		"answers with an error": {
			serve(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Api-Version", "1.41")
				if !strings.HasSuffix(r.URL.Path, "/_ping") {
					http.Error(w, `{"message":"broken"}`, http.StatusInternalServerError)
				}
			}),
			"cannot say its version", "log",
		},
		"a scheme that is not spoken": {
			func(t *testing.T) docker.Config {
				t.Helper()
				return docker.Config{Host: "ssh://host"}
			},
			"DOCKER_HOST", "ssh -L",
		},
		"no address": {
			func(t *testing.T) docker.Config {
				t.Helper()
				return docker.Config{Host: "docker"}
			},
			"DOCKER_HOST", "",
		},
		"no directory of certificates": {
			func(t *testing.T) docker.Config {
				t.Helper()
				return docker.Config{Host: "tcp://127.0.0.1:1", TLSVerify: true, CertPath: filepath.Join(t.TempDir(), "none")}
			},
			"DOCKER_CERT_PATH", "ca.pem",
		},
		"a socket with TLS": {
			func(t *testing.T) docker.Config {
				t.Helper()
				return docker.Config{Host: "unix:///x", TLSVerify: true, CertPath: t.TempDir()}
			},
			"DOCKER_TLS_VERIFY", "",
		},
	}
}

// TestStrangers is about addresses at which there is no engine: a probe says so
// soon, and so does whoever wants a sandbox.
func TestStrangers(t *testing.T) {
	for name, c := range strangers() {
		t.Run(name, func(t *testing.T) { refused(t, c.make(t), c.why, c.remedy) })
	}
}

// refused demands that there is no engine, and what is said about it.
func refused(t *testing.T, cfg docker.Config, why, remedy string) {
	t.Helper()
	cfg.Dir = t.TempDir()
	p, err := docker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second) // less than an engine waits for a probe
	defer cancel()
	caps, err := p.Probe(ctx)
	if err != nil || caps.Ready || !strings.Contains(caps.Why, why) || !strings.Contains(caps.Remedy, remedy) {
		t.Errorf("probe: %+v, %v; want why %q and remedy %q", caps, err, why, remedy)
	}
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{})
	if code := cove.CodeOf(err); code != cove.Unavailable && code != cove.Invalid || !strings.Contains(err.Error(), why) || !strings.Contains(cove.RemedyOf(err), remedy) {
		t.Errorf("create: %v, remedy %q; want why %q and remedy %q", err, cove.RemedyOf(err), why, remedy)
	}
}

// silent is the path of a socket whose server takes connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var held []net.Conn
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			held = append(held, c)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
		for _, c := range held {
			_ = c.Close()
		}
	})
	return path
}

// TestPermission is about a socket that others may use.
func TestPermission(t *testing.T) {
	if os.Getuid() == 0 {
		linuxtest.Again(t, "^TestPermission$")
		return
	}
	path := silent(t)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	refused(t, docker.Config{Host: "unix://" + path}, "may not be opened by this user", "usermod -aG docker")
}

// authority makes certificates for a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, key: newKey(t)}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.pem, a.cert = a.sign(form, form, &a.key.PublicKey)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) sign(form, parent *x509.Certificate, key *ecdsa.PublicKey) ([]byte, *x509.Certificate) {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, form, parent, key, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), cert
}

// pair makes a certificate and its key.
func (a *authority) pair() (cert, key []byte) {
	a.t.Helper()
	own := newKey(a.t)
	cert, _ = a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}, a.cert, &own.PublicKey)
	der, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// dir writes what DOCKER_CERT_PATH names. Vouched leaves out our own certificate.
func (a *authority) dir(vouched bool) string {
	a.t.Helper()
	dir := a.t.TempDir()
	files := map[string][]byte{"ca.pem": a.pem}
	if vouched {
		files["cert.pem"], files["key.pem"] = a.pair()
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return dir
}

// secure starts a server that wants certificates of an authority.
func (a *authority) secure() string {
	a.t.Helper()
	cert, key := a.pair()
	own, err := tls.X509KeyPair(cert, key)
	if err != nil {
		a.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	a.t.Cleanup(s.Close)
	return "tcp://" + s.Listener.Addr().String()
}

// TestTLSMismatch is about an engine and a client that disagree about certificates.
func TestTLSMismatch(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	host := ours.secure()
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	for name, c := range map[string]struct {
		cfg         docker.Config
		why, remedy string
	}{
		"no TLS to one that wants it":    {docker.Config{Host: host}, "wants TLS", "DOCKER_TLS_VERIFY=1"},
		"TLS to one that has none":       {docker.Config{Host: "tcp://" + plain.Listener.Addr().String(), TLSVerify: true, CertPath: ours.dir(true)}, "does not speak TLS", "DOCKER_TLS_VERIFY"},
		"a certificate of nobody known":  {docker.Config{Host: host, TLSVerify: true, CertPath: theirs.dir(true)}, "does not vouch for", "ca.pem"},
		"no certificate of our own":      {docker.Config{Host: host, TLSVerify: true, CertPath: ours.dir(false)}, "does not accept our certificate", "cert.pem"},
		"an engine under another name":   {docker.Config{Host: strings.Replace(host, "127.0.0.1", "127.0.0.2", 1), TLSVerify: true, CertPath: ours.dir(true)}, "Docker daemon not available", "start Docker daemon"},
		"a ca.pem that holds nothing":    {docker.Config{Host: host, TLSVerify: true, CertPath: broken(t, ours, "ca.pem")}, "ca.pem", "DOCKER_CERT_PATH"},
		"a key.pem that is no key":       {docker.Config{Host: host, TLSVerify: true, CertPath: broken(t, ours, "key.pem")}, "cert.pem", "DOCKER_CERT_PATH"},
		"https to one whom nobody knows": {docker.Config{Host: strings.Replace(host, "tcp", "https", 1)}, "does not vouch for", "ca.pem"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, c.cfg, c.why, c.remedy) })
	}
}

// broken is a directory of certificates with one file that holds something else.
func broken(t *testing.T, a *authority, name string) string {
	t.Helper()
	dir := a.dir(true)
	if err := os.WriteFile(filepath.Join(dir, name), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
