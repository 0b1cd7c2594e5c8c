package sdktest_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/cove-sandbox/cove/internal/daemon/daemontest"
	"github.com/cove-sandbox/cove/provider/providertest"
)

const domain = "cove.test"

// serveDomain runs a server for a domain, whose names and certificate are known to
// those that are given what it returns.
func serveDomain(t *testing.T) served {
	t.Helper()
	if os.Geteuid() != 0 {
		providertest.Lacks(t, "sdks", "only root can give programs names of their own")
	}
	dir := t.TempDir()
	ca := certificates(t, dir)
	addr := freePort(t)
	_, port, _ := net.SplitHostPort(addr)
	at, _ := daemontest.Serve(t, settings("local", "COVE_ADDR="+addr, "COVE_E2B_DOMAIN="+domain+":"+port,
		"COVE_TLS_CERT="+filepath.Join(dir, "cert.pem"), "COVE_TLS_KEY="+filepath.Join(dir, "key.pem")))
	resolv := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(resolv, []byte("nameserver "+nameServer(t)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return served{
		env:    append(keys(t, at), "E2B_DOMAIN="+domain+":"+port, "NODE_EXTRA_CA_CERTS="+ca, "SSL_CERT_FILE="+ca),
		resolv: resolv,
	}
}

// freePort returns an address for a server whose port must be known before: none that
// the kernel gives to others meanwhile.
func freePort(t *testing.T) string {
	t.Helper()
	const first, last, tries = 20_000, 30_000, 100
	var err error
	for range tries {
		addr := fmt.Sprintf("127.0.0.1:%d", first+mathrand.IntN(last-first))
		var l net.Listener
		if l, err = net.Listen("tcp4", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatal(err)
	return ""
}

// certificates writes cert.pem and key.pem for the domain and all below it, and
// returns the file of the authority that signed them.
func certificates(t *testing.T, dir string) string {
	t.Helper()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tests of Cove"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: domain}, DNSNames: []string{domain, "*." + domain},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]pem.Block{
		"ca.pem": {Type: "CERTIFICATE", Bytes: caDER}, "cert.pem": {Type: "CERTIFICATE", Bytes: leafDER}, "key.pem": {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "ca.pem")
}

// nameServer answers for the names of the domain, with 127.0.0.1, at an address of
// its own until the test ends.
func nameServer(t *testing.T) string {
	t.Helper()
	var conn net.PacketConn
	var addr string
	var err error
	for last := 9; last < 250; last++ { // others may be at it, too
		addr = fmt.Sprintf("127.0.53.%d", last)
		if conn, err = net.ListenPacket("udp4", addr+":53"); err == nil {
			break
		}
	}
	if err != nil {
		providertest.Lacks(t, "sdks", fmt.Sprintf("no address to answer for names at: %v", err))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		question := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(question)
			if err != nil {
				return // it was closed
			}
			if answer, err := answerName(question[:n]); err == nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-ended
	})
	return addr
}

func answerName(question []byte) ([]byte, error) {
	var p dnsmessage.Parser
	head, err := p.Start(question)
	if err != nil {
		return nil, err
	}
	q, err := p.Question()
	if err != nil {
		return nil, err
	}
	head.Response, head.Authoritative = true, true
	ours := strings.HasSuffix(strings.ToLower(q.Name.String()), domain+".")
	if !ours {
		head.RCode = dnsmessage.RCodeNameError
	}
	b := dnsmessage.NewBuilder(nil, head)
	if err := b.StartQuestions(); err != nil {
		return nil, err
	}
	if err := b.Question(q); err != nil {
		return nil, err
	}
	if ours && q.Type == dnsmessage.TypeA {
		if err := b.StartAnswers(); err != nil {
			return nil, err
		}
		if err := b.AResource(dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}, dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}); err != nil {
			return nil, err
		}
	}
	return b.Finish()
}
