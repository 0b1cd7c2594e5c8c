package client

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
	"github.com/cove-sandbox/cove/retry"
)

// Client is a platform on another side of a connection, bound to the caller
// whose key it shows. It is safe for concurrent use.
type Client struct {
	base   string // what every path is put after
	name   string // the server, in messages
	remedy string // what to do when it cannot be reached
	key    string

	retries  bool
	platform cove.Platform // what the parts are taken from

	transport *http.Transport
	http      *http.Client
	silence   time.Duration
	principal string // who asks, of a client between nodes; "" where the key tells

	*life
}

// life is what clients of one connection have in common.
type life struct {
	closing sync.Once
	quit    chan struct{}  // closed by Close
	pumps   sync.WaitGroup // what runs on behind a call that has returned
}

var _ cove.Platform = (*Client)(nil)

// Option changes how a Client connects.
type Option func(*Client)

// WithTLSConfig says which servers to trust, for https URLs.
func WithTLSConfig(config *tls.Config) Option {
	return func(c *Client) { c.transport.TLSClientConfig = config.Clone() }
}

// WithSilence says how long a stream may be without a sign of life before the
// server counts as gone; servers give one every 15 s. The default is a minute.
func WithSilence(d time.Duration) Option {
	return func(c *Client) { c.silence = d }
}

// WithDialer says how connections come about, and how long they may take to. The
// default waits 30 seconds.
func WithDialer(d *net.Dialer) Option {
	return func(c *Client) {
		c.transport.DialContext = d.DialContext
		if d.Timeout > 0 {
			c.transport.TLSHandshakeTimeout = d.Timeout
		}
	}
}

// WithConnect says who is connected to, whatever the address of the server is: one of
// several that are the same, say.
func WithConnect(connect func(ctx context.Context) (net.Conn, error)) Option {
	return func(c *Client) {
		c.transport.Proxy = nil
		c.transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return connect(ctx) }
	}
}

// WithAutoRetry says whether a session that has expired or was lost is opened again
// by the request that opened it, and the program or the code run once more, as
// package retry has it. The default is true.
func WithAutoRetry(on bool) Option {
	return func(c *Client) { c.retries = on }
}

// New returns a client of the server at address, an http or https URL or
// unix:///path/to.sock, that shows key; an empty key shows none. It connects
// only when it is used. The caller closes it.
func New(address, key string, opts ...Option) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, badAddress()
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, cove.InvalidField("key", "is not a key: it holds spaces or characters that no key has").Reason(cove.ReasonConfiguration)
	}
	c := &Client{key: key, silence: time.Minute, life: &life{quit: make(chan struct{})}, retries: true}
	c.transport = newTransport()
	switch {
	case u.Scheme == "unix" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
		c.base, c.name = "http://cove", address
		c.remedy = "start it with cove serve, or check the path of the socket"
		c.transport.Proxy = nil
		c.transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", u.Path)
		}
	case (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "":
		c.base = strings.TrimRight(u.String(), "/")
		c.name = c.base
		c.remedy = "check the URL, and that cove serve runs there"
	default:
		return nil, badAddress()
	}
	for _, o := range opts {
		o(c)
	}
	c.http = &http.Client{
		Transport: c.transport,
		// A redirect would carry the key to a place that it was not given for.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.platform = direct{c}
	if c.retries {
		c.platform = retry.On(c.platform)
	}
	return c, nil
}

// As returns the platform that another node has for a principal: one node says to
// another who asks it, and is believed because of the connection. Both share their
// connections, and Close is for both. A platform of this kind opens no session anew.
func (c *Client) As(p cove.Principal) (*Client, error) {
	who, err := wire.EncodePrincipal(p)
	if err != nil {
		return nil, err
	}
	out := &Client{
		base: c.base, name: c.name, remedy: c.remedy, transport: c.transport, http: c.http, silence: c.silence, principal: who, life: c.life,
	}
	out.platform = direct{out}
	return out, nil
}

func badAddress() error {
	return cove.InvalidField("url", "must be http://host:port, https://host or unix:///path/to.sock, without a user or a query").Reason(cove.ReasonConfiguration)
}

func newTransport() *http.Transport {
	only1 := new(http.Protocols)
	only1.SetHTTP1(true) // connections to ports are handed over, which HTTP/2 cannot do
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		DisableCompression:    true,
		Protocols:             only1,
		// A server that is not ours must not fill our memory with headers.
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// Close ends what still runs behind calls that have returned, and closes idle
// connections. Calls that are under way go on. It is idempotent.
func (c *Client) Close() error {
	c.closing.Do(func() { close(c.quit) })
	c.pumps.Wait()
	c.transport.CloseIdleConnections()
	return nil
}

// pump runs do in the background until it is over or the client is closed.
func (c *Client) pump(ctx context.Context, do func(context.Context)) {
	c.pumps.Go(func() {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		done := make(chan struct{})
		defer close(done)
		go func() {
			select {
			case <-c.quit:
				cancel()
			case <-done:
			}
		}()
		do(ctx)
	})
}
