//go:build linux

package e2b

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Bounds on what a server may take and say.
const (
	dialTime   = 5 * time.Second
	answerTime = 30 * time.Second // until an answer begins
	maxAnswer  = 4 << 20
	maxSaid    = 2 << 10 // of what a server says that is no answer
)

// exchangeTime bounds a question and its whole answer. Shorter in tests.
var exchangeTime = time.Minute

// errSlow is the cause where an answer took longer than that.
var errSlow = errors.New("the answer did not come to its end")

// caller makes requests, to the API and to machines.
type caller struct {
	http *http.Client
	to   *http.Transport
}

func newCaller() *caller {
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTime}).DialContext,
		TLSHandshakeTimeout: dialTime, ResponseHeaderTimeout: answerTime, ExpectContinueTimeout: time.Second,
		IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 32, ForceAttemptHTTP2: true,
	}
	return &caller{to: t, http: &http.Client{
		Transport: t,
		// A redirect would take the key elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (c *caller) close() { c.to.CloseIdleConnections() }

// request is one that has not been made.
type request struct {
	method, url string
	header      map[string]string
	body        io.Reader
	length      int64  // of body, where it is known
	whom        string // for messages: E2B at HOST, or the machine
}

// secret are the headers that nobody may read in a log.
var secret = []string{"X-API-Key", "X-Access-Token"}

// without hides what of this request is secret in an answer: some servers and
// proxies say what they were asked.
func (r request) without(said []byte) []byte {
	for _, h := range secret {
		if v := r.header[h]; v != "" {
			said = bytes.ReplaceAll(said, []byte(v), []byte("(secret)"))
		}
	}
	return said
}

// send makes a request and returns the answer when its status is one of the good
// ones; what is not good is an error of ours.
func (c *caller) send(ctx context.Context, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, r.body)
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "the request to %s cannot be made", r.whom)
	}
	for k, v := range r.header {
		req.Header.Set(k, v)
	}
	if r.length > 0 {
		req.ContentLength = r.length
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, unreachable(ctx, r.whom, err)
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	defer time.AfterFunc(answerTime, func() { _ = res.Body.Close() }).Stop()
	said, _ := io.ReadAll(io.LimitReader(res.Body, maxSaid)) // the status says enough
	return nil, refused(r.whom, res, r.without(said))
}

// exchange sends a value as JSON and decodes the answer into out, if that is not
// nil. It returns the answer's header.
func (c *caller) exchange(ctx context.Context, r request, in, out any) (http.Header, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, exchangeTime, errSlow)
	defer cancel()
	if r.header == nil {
		r.header = map[string]string{}
	}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return nil, cove.Wrap(cove.Internal, err, "the request to %s cannot be written", r.whom)
		}
		r.body, r.header["Content-Type"] = bytes.NewReader(body), "application/json"
	}
	res, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if out == nil || res.StatusCode == http.StatusNoContent {
		_, _ = io.CopyN(io.Discard, res.Body, maxAnswer) // so that the connection can be used again
		return res.Header, nil
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "application/json" {
		return nil, stranger(r.whom, nil)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return nil, unreachable(ctx, r.whom, err)
	}
	if len(body) > maxAnswer {
		return nil, stranger(r.whom, io.ErrShortBuffer)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return nil, stranger(r.whom, err)
	}
	return res.Header, nil
}

// retryAfter is what a server asks for, in seconds, within reason.
func retryAfter(h http.Header) int {
	n, err := strconv.Atoi(strings.TrimSpace(h.Get("Retry-After")))
	if err != nil || n < 1 {
		return 5
	}
	return min(n, 3600)
}
