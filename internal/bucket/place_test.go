package bucket_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/bucket"
)

func TestPlaces(t *testing.T) {
	for url, want := range map[string]string{
		"file:///a/folder":                                    "/a/folder ",
		"file://localhost/a/folder":                           "/a/folder ",
		"s3://bucket":                                         "https://bucket.s3.us-east-1.amazonaws.com/x us-east-1",
		"s3://bucket/":                                        "https://bucket.s3.us-east-1.amazonaws.com/x us-east-1",
		"s3://bucket/a/b/?region=eu-west-1":                   "https://bucket.s3.eu-west-1.amazonaws.com/a/b/x eu-west-1",
		"s3://dotted.bucket/a":                                "https://s3.us-east-1.amazonaws.com/dotted.bucket/a/x us-east-1",
		"s3://bucket/a?path_style=true":                       "https://s3.us-east-1.amazonaws.com/bucket/a/x us-east-1",
		"s3://bucket/a?endpoint=http://127.0.0.1:9000":        "http://127.0.0.1:9000/bucket/a/x us-east-1",
		"s3://bucket?endpoint=https://h:1/&path_style=false":  "https://bucket.h:1/x us-east-1",
		"s3://bucket?endpoint=https%3A%2F%2F[::1]:9&region=r": "https://[::1]:9/bucket/x r",
	} {
		address, region, err := bucket.Address(url)
		if got := address + " " + region; err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", url, got, err, want)
		}
	}
}

func TestPlacesThatAreNone(t *testing.T) {
	for _, url := range []string{
		"", "x", "/a/folder", "http://h/bucket", "https://h/bucket", "file://", "file://host/a", "file:a/b", "file:///a?x=topsecret", "file:///a#f",
		"s3://", "s3:///a", "s3://b", "s3://UPPER", "s3://a..b", "s3://bucket:80", "s3:bucket", "s3://" + strings.Repeat("b", 64), "s3://bu%20cket",
		"s3://bucket/a//b", "s3://bucket/../b", "s3://bucket/a/./b", "s3://bucket/a%20b", "s3://bucket/a%2f..", "s3://bucket/ü", "s3://bucket/" + strings.Repeat("a", 600),
		"s3://topsecret:topsecret@bucket", "s3://bucket?key=topsecret", "s3://bucket?region=", "s3://bucket?region=a/b", "s3://bucket?region=a&region=b", "s3://bucket?path_style=perhaps",
		"s3://bucket?endpoint=ftp://h", "s3://bucket?endpoint=h:80", "s3://bucket?endpoint=https://u:topsecret@h", "s3://bucket?endpoint=https://h/p", "s3://bucket?endpoint=https://h?a", "s3://bucket?%zz", "s3://bucket\n",
	} {
		_, _, err := bucket.Address(url)
		if !errors.Is(err, cove.Invalid) || cove.RemedyOf(err) == "" || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// FuzzReference looks for a text that is read as a reference, and is not what one
// would be written as.
func FuzzReference(f *testing.F) {
	good := "cove2 " + strings.Repeat("0af", 21) + "1.997203 12 " + string(cove.NewID()) + "\n"
	old := "cove1 " + strings.Repeat("0af", 21) + "1.997203 12\n"
	for _, text := range []string{good, old, "", good + good, strings.ToUpper(good), strings.Replace(good, ".", ".0", 1), strings.Replace(good, " 12", " -1", 1)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if bucket.ReadReference(text) && (len(text) > 128 || !strings.HasPrefix(text, "cove") || strings.Count(text, "\n") != 1 || strings.ContainsAny(text, "/\\\x00")) {
			t.Errorf("%q is a reference", text)
		}
	})
	if !bucket.ReadReference(good) || !bucket.ReadReference(old) {
		f.Errorf("%q or %q is no reference", good, old)
	}
}
