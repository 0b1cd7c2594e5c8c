package e2bapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"slices"
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

// maxToken bounds a token that is decoded before it is known to be good.
const maxToken = 1 << 10

// Token returns the token of a kind with which a caller reaches what has this id. It
// names the caller: a request that sends it acts as that caller's key allows at that
// time. It is good as long as the secret is the same.
func Token(secret []byte, kind string, id cove.ID, caller string) string {
	const length = 32 // of the hex that clients carry
	sum := hmac.New(sha256.New, secret)
	_, _ = sum.Write([]byte("cove e2b " + kind + " 2\x00" + string(id) + "\x00" + caller))
	return base64.RawURLEncoding.EncodeToString([]byte(caller)) + "." + hex.EncodeToString(sum.Sum(nil))[:length]
}

// CallerOf returns the caller that a token names. ok is false for a text that is no
// token of this kind and id; the time that takes tells nothing of the right one.
func CallerOf(secret []byte, kind string, id cove.ID, token string) (caller string, ok bool) {
	if len(token) > maxToken {
		return "", false
	}
	encoded, _, _ := strings.Cut(token, ".")
	name, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || len(name) == 0 {
		return "", false
	}
	want := Token(secret, kind, id, string(name))
	return string(name), subtle.ConstantTimeCompare([]byte(token), []byte(want)) == 1
}

// callerOf is CallerOf with the secret of this server.
func (h *Handler) callerOf(token, kind string, id cove.ID) (string, bool) {
	return CallerOf(h.cfg.Secret, kind, id, token)
}

// tokenFor returns the caller's own token of a kind, or "" where its key holds none of
// the scopes that the token could be used with.
func (c *call) tokenFor(kind string, id cove.ID, scopes ...cove.Scope) string {
	if !slices.ContainsFunc(scopes, c.who.May) {
		return ""
	}
	return Token(c.h.cfg.Secret, kind, id, c.who.Name)
}

// accessToken returns the token with which the caller reaches envd and the interpreter.
func (c *call) accessToken(id cove.ID) string {
	return c.tokenFor(kindAccess, id, AccessScopes()...)
}

// AccessScopes are the scopes of which a caller needs one to be given an access token.
func AccessScopes() []cove.Scope {
	return []cove.Scope{cove.ScopeExec, cove.ScopeFileRead, cove.ScopeFileWrite}
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

// admitted finds out for which caller a call acts: the one that its token names, or ""
// for the session's owner where the call needs no token. Calls without one are few in a
// second: each looks up the owner's key.
func (c *call) admitted(port int) error {
	caller, ok := c.h.callerOf(c.r.Header.Get("X-Access-Token"), kindAccess, c.id)
	switch path := c.r.URL.Path; {
	case ok:
		c.caller = caller
		return nil
	case port == envdPort && path == "/files" && c.r.URL.Query().Has("signature"):
		return c.signed()
	case path == "/health":
		return c.h.open.take(c.id)
	case port == interpreterPort && (path == "/contexts" || strings.HasPrefix(path, "/contexts/")):
		// Their SDKs send no access token here. These calls run nothing.
		c.caller, ok = c.h.callerOf(c.r.Header.Get(trafficHeader), kindTraffic, c.id)
		c.unshown = !ok
		return c.h.open.take(c.id)
	}
	return badToken()
}

func badToken() error {
	return cove.Errorf(cove.Unauthenticated, "the access token is not one of this sandbox").
		Remedy("connect to the sandbox with a key that holds exec, files:read or files:write, which gives one")
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
