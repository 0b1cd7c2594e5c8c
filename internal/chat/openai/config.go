package openai

import (
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/cove-sandbox/cove"
)

// Config is what a model needs.
type Config struct {
	URL     string        // of the API; the path /chat/completions is put after it
	Key     string        // "" sends none
	Model   string        // its name there
	Timeout time.Duration // of one answer as a whole
	Logger  *slog.Logger
}

// Model is a model behind an endpoint. It is safe for concurrent use.
type Model struct {
	name    string
	url     string
	key     string
	secrets []string // nobody reads them in a log
	within  time.Duration
	logger  *slog.Logger
	http    *http.Client
	to      *http.Transport
}

// Bounds on connecting.
const (
	dialTime = 10 * time.Second
	idleTime = time.Minute
	maxIdle  = 8
)

// New returns a model. It connects to nothing yet.
func New(c Config) (*Model, error) {
	base, err := url.Parse(c.URL)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		// Not with the text: it may hold a secret.
		return nil, cove.Errorf(cove.Invalid, "COVE_MODEL_URL is no URL of http or https").Reason(cove.ReasonConfiguration).
			Remedy("set it to the base of an OpenAI-compatible API, such as http://localhost:11434/v1")
	case c.Model == "":
		return nil, cove.Errorf(cove.Invalid, "COVE_MODEL is not set").Reason(cove.ReasonConfiguration).
			Remedy("set it to the name of a model that COVE_MODEL_URL has")
	case c.Timeout <= 0 || c.Logger == nil:
		return nil, cove.Errorf(cove.Internal, "a model needs a timeout and a logger")
	}
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTime}).DialContext,
		TLSHandshakeTimeout: dialTime,
		IdleConnTimeout:     idleTime, MaxIdleConnsPerHost: maxIdle, ForceAttemptHTTP2: true,
	}
	return &Model{
		name: c.Model, url: base.JoinPath("chat", "completions").String(), key: c.Key, secrets: secretsOf(base, c.Key), within: c.Timeout, logger: c.Logger, to: t,
		http: &http.Client{
			Transport:     t,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Name implements [chat.Model].
func (m *Model) Name() string { return m.name }

// Close lets go of connections that nobody uses.
func (m *Model) Close() { m.to.CloseIdleConnections() }
