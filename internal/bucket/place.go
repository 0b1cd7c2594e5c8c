package bucket

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
)

// place is where a URL leads: a folder, or a bucket of an S3 server.
type place struct {
	folder string // of the host; all else is for S3

	scheme string // of the server
	host   string // with the port
	region string
	bucket string
	prefix string // "" or with a slash at the end
	// pathStyle says that the bucket is the first word of the path and no part of
	// the host's name.
	pathStyle bool
}

const defaultRegion = "us-east-1"

// wrong says what is wrong with a URL. It never repeats the URL, in which somebody
// may have written a secret.
func wrong(what string) error {
	return cove.Errorf(cove.Invalid, "the address of the archives %s", what).
		Remedy("write file:///a/folder, or s3://bucket/prefix?endpoint=https://host:port&region=name")
}

func parsePlace(rawURL string) (place, error) {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
		return place{}, wrong("is not a URL")
	case u.User != nil:
		return place{}, wrong("has credentials in it; they are settings of their own")
	case u.Fragment != "" || u.Opaque != "":
		return place{}, wrong("has parts that mean nothing")
	case u.Scheme == "s3":
		return parseS3(u)
	case u.Scheme != "file":
		return place{}, wrong("begins neither with file:// nor with s3://")
	case u.Host != "" && u.Host != "localhost" || !strings.HasPrefix(u.Path, "/") || u.RawQuery != "":
		return place{}, wrong("names no folder; file:// is followed by an absolute path")
	}
	return place{folder: u.Path}, nil
}

func parseS3(u *url.URL) (place, error) {
	p := place{bucket: u.Host, region: defaultRegion, prefix: strings.Trim(u.Path, "/")}
	if len(p.bucket) < 3 || len(p.bucket) > 63 || !only(p.bucket, lower+digits+".-") || strings.Contains(p.bucket, "..") {
		return place{}, wrong("names no bucket after s3://")
	}
	if p.prefix != "" {
		for word := range strings.SplitSeq(p.prefix, "/") {
			if word == "" || word == "." || word == ".." || !only(word, lower+upper+digits+"._-") {
				return place{}, wrong("has a prefix with other characters than letters, digits, and ._-")
			}
		}
		p.prefix += "/"
	}
	if len(p.prefix) > 512 {
		return place{}, wrong("has a prefix that is too long")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return place{}, wrong("has options that cannot be read")
	}
	style := ""
	for name, values := range query {
		switch value := values[0]; {
		case len(values) > 1:
			return place{}, wrong("has an option twice")
		case name == "endpoint":
			if err := p.at(value); err != nil {
				return place{}, err
			}
		case name == "region" && value != "" && len(value) < 64 && only(value, lower+upper+digits+"-_"):
			p.region = value
		case name == "path_style":
			style = value
		default:
			return place{}, wrong("has an option that is not endpoint, region or path_style, or one without a good value")
		}
	}
	return p.styled(style)
}

// at takes the server from an option.
func (p *place) at(endpoint string) error {
	e, err := url.Parse(endpoint)
	if err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" || strings.Trim(e.Path, "/") != "" || e.User != nil || e.RawQuery != "" || e.Fragment != "" {
		return wrong("has an endpoint that is not https://host:port")
	}
	p.scheme, p.host = e.Scheme, e.Host
	return nil
}

// styled decides how the bucket is named: in the path where the server is not
// Amazon's, or its certificate would not fit.
func (p place) styled(style string) (place, error) {
	p.pathStyle = p.host != "" || strings.Contains(p.bucket, ".")
	if style != "" {
		yes, err := strconv.ParseBool(style)
		if err != nil {
			return place{}, wrong("has a path_style that is neither true nor false")
		}
		p.pathStyle = yes
	}
	if p.host == "" {
		p.scheme, p.host = "https", "s3."+p.region+".amazonaws.com"
	}
	return p, nil
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

func only(s, set string) bool { return strings.Trim(s, set) == "" && s != "" }

// address is the URL of an object, or of the bucket for "".
func (p place) address(name string) *url.URL {
	u := &url.URL{Scheme: p.scheme, Host: p.host, Path: "/"}
	if name != "" {
		u.Path += p.prefix + name
	}
	if p.pathStyle {
		u.Path = "/" + p.bucket + u.Path
	} else {
		u.Host = p.bucket + "." + p.host
	}
	return u
}
