package egress

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// Authority signs certificates for hosts whose connections are read. Each has a
// key of its own: who trusts one trusts no other.
type Authority struct {
	Certificate []byte `json:"certificate"` // DER
	Key         []byte `json:"key"`         // PKCS #8
}

// How long certificates hold. An authority lives no longer than what trusts it.
const (
	authorityLife = 400 * 24 * time.Hour
	leafLife      = 24 * time.Hour
	clockSkew     = time.Hour
	mostLeaves    = 256
)

// NewAuthority makes one with a key that nobody else has.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "a key cannot be made")
	}
	now := time.Now()
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Cove sandbox " + serial.Text(36)[:8]},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(authorityLife),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "a certificate cannot be made")
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "a key cannot be written down")
	}
	return &Authority{Certificate: der, Key: secret}, nil
}

func serialNumber() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "there are no random numbers")
	}
	return n.SetBit(n, 120, 1), nil // never short
}

// PEM returns the certificate as programs read it from a file.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate})
}

// String hides the key.
func (a *Authority) String() string { return "authority" }

// GoString hides the key.
func (a *Authority) GoString() string { return a.String() }

// LogValue hides the key.
func (a *Authority) LogValue() slog.Value { return slog.StringValue(a.String()) }

// signer is an Authority at work. Methods are safe for concurrent use.
type signer struct {
	certificate *x509.Certificate
	key         crypto.Signer
	leaf        *ecdsa.PrivateKey // one for all hosts: they all end here

	mu     sync.Mutex
	leaves map[string]*tls.Certificate // guarded by mu
}

func (a *Authority) signer() (*signer, error) {
	cert, err := x509.ParseCertificate(a.Certificate)
	if err != nil {
		return nil, cove.Wrap(cove.Invalid, err, "the certificate of the authority cannot be read")
	}
	key, err := x509.ParsePKCS8PrivateKey(a.Key)
	signs, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return nil, cove.Errorf(cove.Invalid, "the key of the authority cannot be read")
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "a key cannot be made")
	}
	return &signer{certificate: cert, key: signs, leaf: leaf, leaves: map[string]*tls.Certificate{}}, nil
}

// certificateFor returns one for a host, made now or not long ago.
func (s *signer) certificateFor(name string) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if c := s.leaves[name]; c != nil && now.Before(c.Leaf.NotAfter.Add(-leafLife/2)) {
		return c, nil
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	if len(name) > 64 { // the most that a common name holds
		template.Subject = pkix.Name{}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.certificate, s.leaf.Public(), s.key)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	if len(s.leaves) >= mostLeaves {
		clear(s.leaves)
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: s.leaf, Leaf: parsed}
	s.leaves[name] = c
	return c, nil
}
