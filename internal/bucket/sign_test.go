package bucket_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove/internal/bucket"
)

// TestSignature signs the requests that Amazon publishes with their signatures, in
// the guide to S3's API.
func TestSignature(t *testing.T) {
	for url, want := range map[string]string{
		"https://examplebucket.s3.amazonaws.com/test.txt":               "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
		"https://examplebucket.s3.amazonaws.com/?lifecycle":             "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
		"https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J":   "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
		"https://examplebucket.s3.amazonaws.com/?prefix=J&max-keys=%32": "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		check(t, err)
		if strings.HasSuffix(url, ".txt") {
			r.Header.Set("Range", "bytes=0-9")
		}
		r.Header.Set("User-Agent", "is not signed")
		bucket.Sign(r, "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "", "us-east-1", time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC))
		got := r.Header.Get("Authorization")
		if !strings.HasSuffix(got, "Signature="+want) || !strings.HasPrefix(got, "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=host;") {
			t.Errorf("%s: %s", url, got)
		}
	}
}

func TestSessionTokensAreSigned(t *testing.T) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://b.example.com/x", nil)
	check(t, err)
	bucket.Sign(r, "k", "s", "a token", "r", time.Now())
	if got := r.Header.Get("Authorization"); r.Header.Get("X-Amz-Security-Token") != "a token" || !strings.Contains(got, "x-amz-date;x-amz-security-token,") {
		t.Errorf("got %q", got)
	}
}
