package bucket

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"
)

// call is one request to an S3 server. Every call can be made again.
type call struct {
	method string
	name   string // of the object; "" is the bucket
	query  url.Values
	body   content // without a reader there is none
}

// answer is what came back, with a body that must be closed.
type answer struct {
	io.Reader
	size  int64
	date  time.Time // by the server's clock
	close func() error
}

func (a *answer) Close() error { return a.close() }

// do makes a call, and makes it again where a server is busy or a connection broke.
func (s *s3) do(ctx context.Context, c call) (*answer, error) {
	for _, pause := range s.pauses {
		r, err := s.try(ctx, c)
		if !errors.Is(err, errAgain) || ctx.Err() != nil {
			return r, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return s.try(ctx, c)
}

// try makes a call once.
func (s *s3) try(ctx context.Context, c call) (*answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault(s.about(), err)
	}
	ctx, w := newWatch(ctx, s.wait)
	req, err := s.request(ctx, c, w)
	if err != nil {
		w.end()
		return nil, s.strange(err)
	}
	resp, err := s.client.Do(req) //nolint:bodyclose // whoever reads the answer closes it
	if err != nil {
		err = s.silent(ctx, err)
		w.end()
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		err := errors.Join(s.refused(resp), resp.Body.Close())
		w.end()
		return nil, err
	}
	date, _ := http.ParseTime(resp.Header.Get("Date")) // zero where there is none
	return &answer{
		Reader: failing{watched{resp.Body, w}, ctx, s}, size: resp.ContentLength, date: date,
		close: func() error {
			w.end()
			return resp.Body.Close()
		},
	}, nil
}

// emptyDigest is that of a request without a body.
const emptyDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// politely is the length from which a server is asked before a body is sent, so
// that its refusal is heard and not lost with the connection.
const politely = 1 << 20

func (s *s3) request(ctx context.Context, c call, w *watch) (*http.Request, error) {
	u := s.place.address(c.name)
	u.RawQuery = canonicalQuery(c.query)
	var body io.Reader = http.NoBody
	digest := emptyDigest
	if c.body.r != nil {
		digest = c.body.digest
		if c.body.size > 0 {
			body = watched{c.body.reader(), w}
		}
	}
	req, err := http.NewRequestWithContext(ctx, c.method, u.String(), body)
	if err != nil {
		return nil, err
	}
	req.ContentLength = c.body.size
	if c.body.size >= politely {
		req.Header.Set("Expect", "100-continue")
	}
	s.signer.sign(req, digest, time.Now())
	return req, nil
}

// failing says in our words why a body broke off.
type failing struct {
	io.Reader
	ctx context.Context //nolint:containedctx // of the request
	s   *s3
}

func (f failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // a wrapped one is a connection that broke
		err = f.s.silent(f.ctx, err)
	}
	return n, err
}
