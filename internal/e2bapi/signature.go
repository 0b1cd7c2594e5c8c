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

// Bounds on the tokens that one signature is tried with.
const (
	maxTriedOne = 1_000   // of the sandbox that the request names
	maxTriedAll = 100_000 // of all sandboxes, where it names none
)

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

// signed looks for the caller whose token of the sandbox a request was signed with.
func (c *call) signed() error {
	_, err := c.claimed(c.id, maxTriedOne)
	return err
}

// signedSandbox returns the sandbox that a signed request is for which names none: the
// one that one of the tokens in use is for.
func (c *call) signedSandbox() (cove.ID, error) {
	if !c.r.URL.Query().Has("signature") {
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
	id, err := c.claimed("", maxTriedAll)
	if err == nil {
		c.user, err = userOf(c.r)
	}
	return id, err
}

// claimed returns the sandbox whose token a request was signed with, and notes the
// caller that the token is of. A wrong signature is counted before it is looked at. id
// "" means that it may be any sandbox.
func (c *call) claimed(id cove.ID, most int) (cove.ID, error) {
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
	for id, caller := range c.holders(id) {
		if tried == most {
			return "", cove.Errorf(cove.Unauthenticated, "the signature was tried with %d access tokens, the most, and none is its own", most).
				Remedy("send the access token in X-Access-Token instead of a signature, or revoke keys of this tenant that are not used")
		}
		tried++
		if !claim.by(Token(c.h.cfg.Secret, kindAccess, id, caller)) {
			continue
		}
		back()
		// Whoever has the link may use it, also a page of another origin.
		c.w.Header().Set("Access-Control-Allow-Origin", "*")
		if claim.expires != 0 && claim.expires <= time.Now().Unix() {
			return "", cove.Errorf(cove.Unauthenticated, "signature is already expired").Remedy("make a new link")
		}
		c.caller = caller
		return id, nil
	}
	return "", cove.Errorf(cove.Unauthenticated, "the signature is not one of a sandbox that is here").
		Remedy("make a new link with the access token that your key is given for the sandbox")
}

func (c *call) holders(id cove.ID) iter.Seq2[cove.ID, string] {
	if c.h.cfg.Holders == nil {
		return func(func(cove.ID, string) bool) {}
	}
	return c.h.cfg.Holders(c.r.Context(), id)
}
