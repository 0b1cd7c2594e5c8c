package bucket

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// maxObject is what S3 takes in one request.
const maxObject = 5 << 30

// s3 is objects in a bucket.
type s3 struct {
	place  place
	signer signer
	client *http.Client
	wait   time.Duration   // how long a server may be silent
	pauses []time.Duration // before each further attempt
}

// connections is how many are kept to a server; more are made when needed.
const connections = 8

func openS3(p place, cfg Config) (*s3, error) {
	if cfg.AccessKey == "" || cfg.SecretKey == "" {
		return nil, cove.Errorf(cove.Invalid, "the archives are in a bucket, and there are no credentials for it").
			Remedy("set COVE_ARCHIVE_ACCESS_KEY and COVE_ARCHIVE_SECRET_KEY")
	}
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		transport = &http.Transport{}
	}
	transport = transport.Clone()
	transport.MaxIdleConnsPerHost = connections
	transport.ResponseHeaderTimeout = patience
	transport.DisableCompression = true // a stream is what was stored
	return &s3{
		place:  p,
		signer: signer{cfg.AccessKey, cfg.SecretKey, cfg.SessionToken, p.region, "s3"},
		client: &http.Client{
			Transport: transport,
			// A signature is for one host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		wait:   patience,
		pauses: []time.Duration{250 * time.Millisecond, time.Second},
	}, nil
}

func (s *s3) close() error {
	s.client.CloseIdleConnections()
	return nil
}

func (s *s3) about() string { return "the bucket " + s.place.bucket + " at " + s.place.host }
func (s *s3) most() int64   { return maxObject }

func (s *s3) put(ctx context.Context, name string, c content) error {
	r, err := s.do(ctx, call{method: http.MethodPut, name: name, body: c})
	return finish(r, err)
}

func (s *s3) get(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	r, err := s.do(ctx, call{method: http.MethodGet, name: name})
	if err != nil {
		return nil, 0, err
	}
	if r.size < 0 {
		return nil, 0, errors.Join(s.strange(nil), r.Close())
	}
	return r, r.size, nil
}

func (s *s3) stat(ctx context.Context, name string) (int64, error) {
	r, err := s.do(ctx, call{method: http.MethodHead, name: name})
	if err != nil {
		return 0, err
	}
	return r.size, finish(r, nil)
}

func (s *s3) delete(ctx context.Context, name string) error {
	r, err := s.do(ctx, call{method: http.MethodDelete, name: name})
	if errors.Is(err, errMissing) {
		return nil
	}
	return finish(r, err)
}

// now lists one object, because that is the cheapest request that shows whether
// the bucket is there and ours to list.
func (s *s3) now(ctx context.Context) (time.Time, error) {
	p, err := s.page(ctx, url.Values{"list-type": {"2"}, "max-keys": {"1"}, "prefix": {s.place.prefix}})
	if err == nil && p.date.IsZero() {
		err = s.strange(nil)
	}
	return p.date, err
}

// finish reads an answer that says nothing more.
func finish(r *answer, err error) error {
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(r, maxAnswer))
	return errors.Join(err, r.Close())
}

// page is one answer to a list.
type page struct {
	XMLName   xml.Name `xml:"ListBucketResult"`
	Encoding  string   `xml:"EncodingType"`
	Truncated bool     `xml:"IsTruncated"`
	Next      string   `xml:"NextContinuationToken"`
	Contents  []struct {
		Key          string
		LastModified time.Time
	}

	date time.Time // by the server's clock
}

const (
	maxAnswer = 8 << 20 // a page has a thousand lines
	maxPages  = 10_000
)

func (s *s3) list(ctx context.Context, folder string) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		query := url.Values{"list-type": {"2"}, "encoding-type": {"url"}, "prefix": {s.place.prefix + folder + "/"}}
		for range maxPages {
			p, err := s.page(ctx, query)
			if err != nil {
				yield(entry{}, err)
				return
			}
			for _, line := range p.Contents {
				name := line.Key
				if p.Encoding == "url" {
					name, _ = url.QueryUnescape(name)
				}
				name, ok := strings.CutPrefix(name, query.Get("prefix"))
				if ok && !yield(entry{name, line.LastModified}, nil) {
					return
				}
			}
			if !p.Truncated {
				return
			}
			if p.Next == "" || p.Next == query.Get("continuation-token") {
				break
			}
			query.Set("continuation-token", p.Next)
		}
		yield(entry{}, s.strange(nil))
	}
}

func (s *s3) page(ctx context.Context, query url.Values) (page, error) {
	r, err := s.do(ctx, call{method: http.MethodGet, query: query})
	if err != nil {
		return page{}, err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxAnswer))
	if err := errors.Join(err, r.Close()); err != nil {
		return page{}, s.lost(err)
	}
	p := page{date: r.date}
	if err := xml.Unmarshal(text, &p); err != nil {
		return page{}, s.strange(err)
	}
	return p, nil
}
