//go:build linux

package microsandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// Bounds on the server. A question whose answer takes long brings its own time.
const (
	runTime   = 30 * time.Second
	maxAnswer = 8 << 20
)

// Shorter in tests.
var (
	healthTime  = 2 * time.Second
	metricsTime = 5 * time.Second
	stopTime    = 30 * time.Second
	startShare  = 0.75                  // of the time for a start, that its answer may take
	mailPause   = 25 * time.Millisecond // before a question is asked again; it doubles
	doctorTime  = 3 * time.Second
)

// rpcClient speaks JSON-RPC to a server of 0.1 or 0.2.
type rpcClient struct {
	url  string
	key  string
	http *http.Client
	last atomic.Int64 // the id of the newest question
}

func newRPCClient(server, key string) *rpcClient {
	return &rpcClient{
		url: strings.TrimRight(server, "/"), key: key,
		http: &http.Client{
			Transport: &http.Transport{
				DialContext:         (&net.Dialer{Timeout: healthTime}).DialContext,
				TLSHandshakeTimeout: healthTime, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute,
			},
			// The key is for this server alone.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// shown is the server's address as it may be shown.
func (c *rpcClient) shown() string {
	u, err := url.Parse(c.url)
	if err != nil {
		return "MSB_SERVER_URL"
	}
	return u.Scheme + "://" + u.Host // a password, a user or a query may be secret
}

// without hides the key in what a server said: some say what they were asked.
func (c *rpcClient) without(said string) string {
	if c.key == "" {
		return said
	}
	return strings.ReplaceAll(said, c.key, "(secret)")
}

// health asks whether there is a server, without the key.
func (c *rpcClient) health(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/api/v1/health", nil)
	if err != nil {
		return cove.Wrap(cove.Invalid, err, "MSB_SERVER_URL is not an address").Reason(cove.ReasonConfiguration)
	}
	status, body, err := c.send(req)
	if err != nil {
		return err
	}
	var said struct {
		Message *string `json:"message"`
	}
	if status != http.StatusOK || json.Unmarshal(body, &said) != nil || said.Message == nil {
		return c.stranger(status, body)
	}
	return nil
}

// call asks one question. It never asks twice.
func (c *rpcClient) call(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	id := c.last.Add(1)
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "id": id, "params": params})
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "the question to microsandbox cannot be written")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/api/v1/rpc", bytes.NewReader(body))
	if err != nil {
		return nil, cove.Wrap(cove.Invalid, err, "MSB_SERVER_URL is not an address").Reason(cove.ReasonConfiguration)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	status, answer, err := c.send(req)
	if err != nil {
		return nil, err
	}
	return c.result(method, id, status, answer)
}

// send makes one exchange. When the caller's context ends, the error is the
// context's; when only our own time is over, the server is to blame.
func (c *rpcClient) send(req *http.Request) (int, []byte, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, c.silent(req.Context(), err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return 0, nil, c.silent(req.Context(), err)
	}
	if len(body) > maxAnswer {
		return 0, nil, cove.Errorf(cove.Unavailable, "the server at %s answers with more than %s", c.shown(), cove.Bytes(maxAnswer)).
			Reason(cove.ReasonConnection).Remedy("check that MSB_SERVER_URL names a microsandbox server")
	}
	return resp.StatusCode, body, nil
}

// errSilent marks an exchange of which nobody knows whether the server did it.
var errSilent = errors.New("no answer")

func (c *rpcClient) silent(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Canceled
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the address
	}
	remedy := "start the server (msb server start, versions 0.1 and 0.2), set MSB_SERVER_URL to where it is, or MSB_TRANSPORT=cli for later versions"
	if ctx.Err() != nil || isTimeout(err) {
		return cove.Wrap(cove.Unavailable, errors.Join(errSilent, err), "the microsandbox server at %s takes questions and does not answer", c.shown()).
			Reason(cove.ReasonConnection).Remedy("look at the server's log and restart it")
	}
	return cove.Wrap(cove.Unavailable, errors.Join(errSilent, err), "the microsandbox server at %s cannot be reached", c.shown()).
		Reason(cove.ReasonConnection).Remedy("%s", remedy)
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
