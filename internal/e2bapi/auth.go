package e2bapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/cove-sandbox/cove"
)

// What tokens are for: one kind is never good for another.
const (
	kindAccess  = "access"  // envd and the interpreter
	kindTraffic = "traffic" // other ports of the sandbox
	kindUpload  = "upload"  // files of a template that is built
	kindVolume  = "volume"  // files of a volume
)

// Token returns the token of a kind for what has this name, which is good as long as
// the secret.
func Token(secret []byte, kind, name string) string {
	const length = 32 // of the hex that clients carry
	sum := hmac.New(sha256.New, secret)
	_, _ = sum.Write([]byte("cove e2b " + kind + " 1\x00" + name))
	return hex.EncodeToString(sum.Sum(nil))[:length]
}

func (h *Handler) token(kind string, id cove.ID) string { return Token(h.cfg.Secret, kind, string(id)) }

// shows reports whether a text is the token, in a time that tells nothing of it.
func (h *Handler) shows(text, kind string, id cove.ID) bool {
	return subtle.ConstantTimeCompare([]byte(text), []byte(h.token(kind, id))) == 1
}

// keyOf returns the key that a call of the control API shows. Older clients send an
// access token of E2B's own in Authorization beside it, which means nothing here.
func keyOf(header http.Header) string {
	if keys := header.Values("X-Api-Key"); len(keys) > 0 {
		if len(keys) > 1 {
			return ""
		}
		return keys[0]
	}
	return bearerOf(header)
}

// bearerOf returns the token in Authorization, if it is one.
func bearerOf(header http.Header) string {
	scheme, secret, _ := strings.Cut(header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || len(header.Values("Authorization")) > 1 {
		return ""
	}
	return strings.TrimLeft(secret, " ")
}

// userOf returns the user whom a call of envd names: in Basic auth, without a password.
func userOf(r *http.Request) (string, error) {
	name, _, ok := r.BasicAuth()
	if !ok {
		name = r.URL.Query().Get("username")
	}
	switch name {
	case "", "user", "sandbox":
		return name, nil
	default:
		return "", cove.InvalidField("user", "%q is not in this sandbox, which has one user; leave it out", clip(name))
	}
}

// clip bounds what is quoted of a client.
func clip(text string) string {
	const most = 64
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// admitted reports whether a call shows the sandbox's token, or needs none. Those that
// show none are few in a second: each looks at the owner's key.
func (c *call) admitted(port int) error {
	switch path := c.r.URL.Path; {
	case c.h.shows(c.r.Header.Get("X-Access-Token"), kindAccess, c.id):
		return nil
	case port == envdPort && path == "/files" && c.r.URL.Query().Has("signature"):
		return c.signed()
	case path == "/health":
		return c.h.open.take(c.id)
	case port == interpreterPort && (path == "/contexts" || strings.HasPrefix(path, "/contexts/")):
		// Their SDKs show no access token here. What is there can run nothing.
		c.unshown = !c.h.shows(c.r.Header.Get(trafficHeader), kindTraffic, c.id)
		return c.h.open.take(c.id)
	}
	return badToken()
}

func badToken() error {
	return cove.Errorf(cove.Unauthenticated, "the access token is not that of this sandbox").
		Remedy("connect to the sandbox with your key, which gives one")
}

// public reports whether a sandbox lets those in who show nothing.
func (c *call) public() error {
	s, err := c.platform.Sessions().Get(c.r.Context(), c.id)
	if err != nil {
		return err
	}
	if !s.Spec.PublicPorts {
		return cove.Errorf(cove.Unauthenticated, "the traffic to this sandbox is not public").Remedy("send its traffic access token in %s", trafficHeader)
	}
	return nil
}
