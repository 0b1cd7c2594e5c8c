package e2bapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cove-sandbox/cove"
)

// What a signature allows.
const (
	signRead  = "read"
	signWrite = "write"
)

// searchWait is how long a signature that names no sandbox waits for its turn.
const searchWait = 5 * time.Second

// maxTried bounds the sandboxes that a signature without one is tried for.
const maxTried = 100_000

// Sign returns the signature of a link that reads or writes a file: path and user as
// they are in the link, the sandbox's access token, and when it ends, in seconds of
// Unix time; 0 means that it does not.
func Sign(path, operation, user, token string, expires int64) string {
	text := path + ":" + operation + ":" + user + ":" + token
	if expires != 0 {
		text += ":" + strconv.FormatInt(expires, 10)
	}
	sum := sha256.Sum256([]byte(text))
	return "v1_" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// claim is what a signed link says.
type claim struct {
	path, operation, user, signature string
	expires                          int64
}

// claimOf reads a signed link.
func claimOf(method string, query url.Values) (claim, error) {
	c := claim{path: query.Get("path"), operation: signRead, user: query.Get("username"), signature: query.Get("signature")}
	if method != http.MethodGet {
		c.operation = signWrite
	}
	switch c.user {
	case "", "user", "sandbox":
	default: // a colon in it could make the text that was signed for another link
		return c, cove.Errorf(cove.Unauthenticated, "the link names a user that this sandbox does not have")
	}
	if text := query.Get("signature_expiration"); text != "" {
		var err error
		if c.expires, err = strconv.ParseInt(text, 10, 64); err != nil || c.expires <= 0 {
			return c, cove.Errorf(cove.Unauthenticated, "signature_expiration is not a time")
		}
	}
	return c, nil
}

// by reports whether the claim was signed with a token, in a time that tells nothing of
// how far it is off.
func (c claim) by(token string) bool {
	return subtle.ConstantTimeCompare([]byte(c.signature), []byte(Sign(c.path, c.operation, c.user, token, c.expires))) == 1
}

// signed reports whether a request shows a good signature in the place of a token.
func (c *call) signed() error {
	_, err := c.claimed(func(yield func(cove.ID) bool) { yield(c.id) })
	return err
}

// signer returns the sandbox whose signature a request shows that names none: one of
// those that run could have made it.
func (c *call) signer() (cove.ID, error) {
	if !c.r.URL.Query().Has("signature") || c.h.cfg.Live == nil {
		return "", cove.Errorf(cove.Unauthenticated, "the request names no sandbox, neither by its host nor by %s", sandboxHeader).
			Remedy("use a link that is signed")
	}
	// All sandboxes are looked at, so one request does so at a time.
	select {
	case c.h.search <- nothing{}:
		defer func() { <-c.h.search }()
	case <-time.After(searchWait):
		return "", cove.Errorf(cove.Exhausted, "too many signatures are being looked up").Reason(cove.ReasonRateLimited).
			Remedy("send %s, or try again", sandboxHeader)
	case <-c.r.Context().Done():
		return "", c.r.Context().Err()
	}
	id, err := c.claimed(c.h.cfg.Live(c.r.Context()))
	if err == nil {
		c.user, err = userOf(c.r)
	}
	return id, err
}

// claimed returns which of some sandboxes a request shows a signature of. Wrong ones are
// counted before anybody looks at them.
func (c *call) claimed(ids iter.Seq[cove.ID]) (cove.ID, error) {
	back, ok := c.h.trials.begin(c.r.RemoteAddr)
	if !ok {
		return "", cove.Errorf(cove.Exhausted, "too many wrong signatures came from this address").
			Reason(cove.ReasonRateLimited).Remedy("wait a second")
	}
	claim, err := claimOf(c.r.Method, c.r.URL.Query())
	if err != nil {
		return "", err
	}
	tried := 0
	for id := range ids {
		if claim.by(c.h.token(kindAccess, id)) {
			back()
			// Whoever has the link may use it, also a page of another origin.
			c.w.Header().Set("Access-Control-Allow-Origin", "*")
			if claim.expires != 0 && claim.expires <= time.Now().Unix() {
				return "", cove.Errorf(cove.Unauthenticated, "signature is already expired").Remedy("make a new link")
			}
			return id, nil
		}
		if tried++; tried == maxTried {
			break
		}
	}
	return "", cove.Errorf(cove.Unauthenticated, "the signature is not one of a sandbox that is here")
}
