//go:build !lean

package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// How long certificates of our own making are good.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 30 * 24 * time.Hour
	leafSpare     = 10 * 24 * time.Hour // then there is a new one
	backdate      = time.Hour           // for clocks that are behind
)

// authority vouches for the hosts of one domain, and can vouch for no other: whoever
// trusts its certificate trusts it for that domain alone. It is safe for concurrent use.
type authority struct {
	path   string // of its certificate
	domain string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey

	mu   sync.Mutex
	leaf *tls.Certificate // guarded by mu
}

// file returns the file with the certificate that clients are to trust, or "".
func (a *authority) file() string {
	if a == nil {
		return ""
	}
	return a.path
}

// openAuthority returns the authority for a domain in a COVE_HOME: the one that is
// there, or a new one where there is none, it has expired, or it is for another domain.
func openAuthority(dir, domain string) (*authority, error) {
	a := &authority{path: filepath.Join(dir, "dev-ca.pem"), domain: domain}
	keyFile := filepath.Join(dir, "dev-ca.key")
	if err := a.read(keyFile); err != nil {
		if err := a.create(keyFile); err != nil {
			return nil, homeError(dir, err)
		}
	}
	_, err := a.current(nil)
	return a, err
}

// errOtherAuthority says that what is there cannot be used.
var errOtherAuthority = errors.New("the authority is for something else")

// read takes up the authority that is there.
func (a *authority) read(keyFile string) error {
	certPEM, err := readPEM("--dev-tls", a.path, "CERTIFICATE")
	if err != nil {
		return err
	}
	keyPEM, err := readPEM("--dev-tls", keyFile, "EC PRIVATE KEY")
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return err
	}
	cert, err := leafOf(&pair)
	if err != nil {
		return err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !cert.IsCA || !slices.Equal(cert.PermittedDNSDomains, []string{a.domain}) || time.Now().Add(leafLife).After(cert.NotAfter) {
		return errOtherAuthority
	}
	a.cert, a.key = cert, key
	return nil
}

// create makes an authority and keeps it. The key is written first, so that there is
// never a certificate to trust whose key is missing.
func (a *authority) create(keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	form := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Cove development authority for " + a.domain},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: []string{a.domain},
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	a.key = key
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := replaceFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600); err != nil {
		return err
	}
	return replaceFile(a.path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

// replaceFile writes a file as a whole.
func replaceFile(name string, data []byte, mode fs.FileMode) error {
	next := name + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(next, data, mode); err != nil {
		return err
	}
	return os.Rename(next, name)
}

// serial returns a number that no other certificate has.
func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	b[0] &= 0x7f           // positive, and not longer than it may be
	return new(big.Int).SetBytes(b[:])
}

// current returns the certificate of the domain and the hosts below it. It is made
// anew long before it ends, and kept nowhere.
func (a *authority) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if a.leaf != nil && now.Add(leafSpare).Before(a.leaf.Leaf.NotAfter) {
		return a.leaf, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "a certificate for %s cannot be made", a.domain)
	}
	form := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: a.domain}, DNSNames: []string{a.domain, "*." + a.domain},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(leafLife),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, form, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "a certificate for %s cannot be made", a.domain)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "a certificate for %s cannot be made", a.domain)
	}
	a.leaf = &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key, Leaf: leaf}
	return a.leaf, nil
}

// leafOf returns the first certificate of a pair.
func leafOf(pair *tls.Certificate) (*x509.Certificate, error) {
	if pair.Leaf != nil {
		return pair.Leaf, nil
	}
	return x509.ParseCertificate(pair.Certificate[0])
}
