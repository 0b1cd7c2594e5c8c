package bucket

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// signer signs requests with Signature Version 4 of Amazon's services.
type signer struct {
	accessKey string
	secretKey string
	token     string
	region    string
	service   string
}

const (
	algorithm = "AWS4-HMAC-SHA256"
	basicTime = "20060102T150405Z"
)

// sign puts a signature on a request: of its method, path, query, host, digest of
// the body, and every header that begins with X-Amz-, or Range. Paths are taken as
// they are and must need no escape.
func (s signer) sign(r *http.Request, digest string, now time.Time) {
	stamp := now.UTC().Format(basicTime)
	r.Header.Set("X-Amz-Date", stamp)
	r.Header.Set("X-Amz-Content-Sha256", digest)
	if s.token != "" {
		r.Header.Set("X-Amz-Security-Token", s.token)
	}
	names, headers := canonicalHeaders(r)
	request := strings.Join([]string{r.Method, r.URL.Path, canonicalQuery(r.URL.Query()), headers, names, digest}, "\n")
	scope := strings.Join([]string{stamp[:8], s.region, s.service, "aws4_request"}, "/")
	sum := sha256.Sum256([]byte(request))
	text := strings.Join([]string{algorithm, stamp, scope, hex.EncodeToString(sum[:])}, "\n")
	signature := hex.EncodeToString(mac(s.key(stamp[:8]), text))
	r.Header.Set("Authorization", algorithm+" Credential="+s.accessKey+"/"+scope+", SignedHeaders="+names+", Signature="+signature)
}

// key is the secret for one day, region and service.
func (s signer) key(day string) []byte {
	key := []byte("AWS4" + s.secretKey)
	for _, word := range []string{day, s.region, s.service, "aws4_request"} {
		key = mac(key, word)
	}
	return key
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// canonicalHeaders returns the names of the signed headers and their lines.
func canonicalHeaders(r *http.Request) (names, lines string) {
	signed := []string{"host"}
	for name := range r.Header {
		if name := strings.ToLower(name); strings.HasPrefix(name, "x-amz-") || name == "range" {
			signed = append(signed, name)
		}
	}
	slices.Sort(signed)
	var b strings.Builder
	for _, name := range signed {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.URL.Host
		}
		b.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	return strings.Join(signed, ";"), b.String()
}

// canonicalQuery is a query in the order and with the escapes that are signed.
func canonicalQuery(q url.Values) string {
	pairs := make([]string, 0, len(q))
	for name, values := range q {
		for _, value := range values {
			pairs = append(pairs, escape(name)+"="+escape(value))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// escape leaves only what needs no escape anywhere.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
