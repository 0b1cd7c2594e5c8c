package msbapi

import (
	"net/http"
	"strings"

	"github.com/cove-sandbox/cove"
)

// prefixes begin the secrets that are keys: the original's, and Cove's other forms.
var prefixes = []string{"msb_", "cove_", "e2b_"}

// secretOf returns the key that a request shows, or "". Proxy-Authorization is looked
// at first, and the word Bearer may be missing, as in the original.
func secretOf(r *http.Request) string {
	text := r.Header.Get("Proxy-Authorization")
	if text == "" {
		text = r.Header.Get("Authorization")
	}
	text = strings.TrimPrefix(text, "Bearer ")
	for _, p := range prefixes {
		if strings.HasPrefix(text, p) {
			return text
		}
	}
	return ""
}

// identify finds out who asks.
func (c *call) identify() (leave func(), err error) {
	secret := secretOf(c.r)
	if secret == "" {
		return nil, &failure{status: http.StatusUnauthorized, code: codeCredentials, text: "Invalid credentials"}
	}
	who, done, err := c.Authenticate(c.r.Context(), secret)
	if done == nil {
		done = func() {}
	}
	if err != nil {
		done()
		return nil, err
	}
	c.who, c.platform = who, c.Platform(who)
	stop := func() {}
	c.ctx = c.r.Context()
	if c.Watch != nil {
		c.ctx, stop = c.Watch(c.ctx, who)
	}
	return func() { stop(); done() }, nil
}

// everything is the namespace of a key for all of them.
const everything = cove.AllNamespaces

// enters reports whether a principal may use a namespace. A key that names none is
// for all.
func enters(p cove.Principal, namespace string) error {
	mine := p.Limits.Namespace
	if mine == "" || mine == cove.AllNamespaces || mine == namespace {
		return nil
	}
	return denied(nil)
}
