package cluster

import (
	"crypto"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"math/big"
	"time"

	"github.com/cove-sandbox/cove"
)

// minSecret is how long the secret of a cluster is at least.
const minSecret = 32

// identity is what a node shows to others, and what it wants to be shown.
type identity struct {
	certificate tls.Certificate
	nodes       *x509.CertPool
}

// anyNode is a name that every node goes by, for who does not know which one answers.
const anyNode = "any.node.cove"

// hostOf is the name of a node in its certificate. A node's own name may hold what no
// host's does.
func hostOf(node string) string {
	sum := sha256.Sum256([]byte(node))
	return hex.EncodeToString(sum[:16]) + ".node.cove"
}

// Derive returns 32 bytes that only who knows the secret of a cluster can tell, for
// one purpose.
func Derive(secret, purpose string) ([]byte, error) {
	if len(secret) < minSecret {
		return nil, cove.InvalidField("COVE_CLUSTER_SECRET", "is shorter than %d characters; make one with openssl rand -hex 32, the same for all nodes", minSecret).
			Reason(cove.ReasonConfiguration)
	}
	return hkdf.Key(sha256.New, []byte(secret), nil, "cove cluster: "+purpose, 32)
}

// newIdentity makes a certificate for a node. The authority behind it is the secret
// itself: every node makes the same one.
func newIdentity(secret, node string) (identity, error) {
	seed, err := Derive(secret, "authority")
	if err != nil {
		return identity{}, err
	}
	authority := ed25519.NewKeyFromSeed(seed)
	issuer := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cove cluster"},
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	root, err := sign(issuer, issuer, authority.Public(), authority)
	if err != nil {
		return identity{}, err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return identity{}, err
	}
	leaf, err := sign(&x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "cove node"},
		DNSNames: []string{hostOf(node), anyNode}, NotBefore: issuer.NotBefore, NotAfter: issuer.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, root, public, authority)
	if err != nil {
		return identity{}, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(root)
	return identity{
		certificate: tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: private, Leaf: leaf},
		nodes:       pool,
	}, nil
}

func sign(what, by *x509.Certificate, public crypto.PublicKey, authority crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, what, by, public, authority)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// caller is how this node calls another one, or any.
func (i identity) caller(host string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{i.certificate}, RootCAs: i.nodes, ServerName: host,
		ClientSessionCache: tls.NewLRUClientSessionCache(8),
	}
}

// door is how this node answers others, and nobody else.
func (i identity) door() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{i.certificate}, ClientCAs: i.nodes,
		ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"http/1.1"},
	}
}
