package cove

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"time"
)

// KeyForm is the shape of a key's secret: clients of others look at it before
// they send it. Whatever its form, a secret is found by its hash alone.
type KeyForm string

// The forms of secrets.
const (
	KeyPlain        KeyForm = ""    // cove_ and 32 letters and digits
	KeyE2B          KeyForm = "e2b" // e2b_ and 40 hexadecimal digits, as E2B's SDKs ask for
	KeyMicrosandbox KeyForm = "msb" // msb_ and a JSON Web Token, as microsandbox's clients show
)

// KeyForms lists the forms that have a word.
func KeyForms() []KeyForm { return []KeyForm{KeyE2B, KeyMicrosandbox} }

// AllNamespaces is the namespace of a key of microsandbox's form that reaches
// every namespace.
const AllNamespaces = "*"

// MicrosandboxTTL is how long a key of microsandbox's form is good for where
// nobody says: as long as its own.
const MicrosandboxTTL = 24 * time.Hour

// secretPrefix marks a secret as ours, so that scanners of leaked keys know it.
const secretPrefix = "cove_"

// NewSecret returns a fresh secret for a key: 160 bits of chance.
func NewSecret() string {
	return secretPrefix + crockford.EncodeToString(chance(20))
}

// NewSecretFor returns a fresh secret in the form of key k, which has its
// namespace and its times already. It holds at least 160 bits of chance.
func NewSecretFor(form KeyForm, k *Key) string {
	switch form {
	case KeyE2B:
		return "e2b_" + hex.EncodeToString(chance(20))
	case KeyMicrosandbox:
		return "msb_" + webToken(k)
	case KeyPlain:
	}
	return NewSecret()
}

// webToken says of k what clients may read of it. What it is signed with is
// thrown away: the token as a whole is the secret, so that a changed one is an
// unknown one, and revoking it needs nothing of its own.
func webToken(k *Key) string {
	claims, _ := json.Marshal(struct { // of numbers and a checked name: never fails
		Expires   int64  `json:"exp"`
		Issued    int64  `json:"iat"`
		Namespace string `json:"namespace"`
	}{k.ExpiresAt.Unix(), k.CreatedAt.Unix(), k.Limits.Namespace})
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT","alg":"HS256"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := hmac.New(sha256.New, chance(32))
	sum.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

func chance(n int) []byte {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails since Go 1.24
	return raw
}

// HashSecret returns what is kept of a secret. A plain hash is enough, since a
// secret is chance and not a word that somebody could guess.
func HashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
