package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/cove-sandbox/cove/internal/wire"
	"github.com/cove-sandbox/cove/skills"
)

func healthRoutes() []route {
	return []route{
		{method: http.MethodGet, pattern: "/health", summary: "Ask how the server is", open: true, deed: get(healthAnswer)},
		{method: http.MethodGet, pattern: "/api/v1/health", summary: "Ask how the server is", open: true, deed: get(healthAnswer)},
		{method: http.MethodGet, pattern: "/ready", summary: "Ask whether the server takes requests; 503 says no", open: true, deed: deed{
			answer: reflect.TypeFor[wire.Health](), status: http.StatusOK, do: (*call).ready,
		}},
		{method: http.MethodGet, pattern: "/openapi.json", summary: "Get this description", gives: "application/json", deed: deed{status: http.StatusOK, do: (*call).describe}},
		{method: http.MethodGet, pattern: "/llms.txt", summary: "Get how to use Cove, for a model", gives: "text/plain", deed: deed{status: http.StatusOK, do: (*call).guide}},
		{method: http.MethodGet, pattern: "/{$}", summary: "Get the web console, or a word about where things are and who you are for who is no browser", open: true, gives: "text/html", deed: deed{status: http.StatusOK, do: (*call).front}},
	}
}

func healthAnswer(c *call) (wire.Health, error) { return c.health(), nil }

func (c *call) health() wire.Health {
	h := c.api.Health(c.r.Context())
	if h.Version == "" {
		h.Version = c.api.Version
	}
	if h.Message == "" {
		h.Message = "Service is " + h.Status
	}
	return h
}

func (c *call) ready() error {
	h := c.health()
	if h.Status != wire.Healthy {
		return c.send(http.StatusServiceUnavailable, h)
	}
	return c.send(http.StatusOK, h)
}

func (c *call) describe() error {
	c.w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(c.w, c.api.openAPI()) // the client may be gone
	return nil
}

// guide is for a model that was given the address of a server and a key.
func (c *call) guide() error {
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(c.w, skills.Cove()) // the client may be gone
	return nil
}

const (
	frontPage = `Cove runs untrusted code in sandboxes.

%s
The API is below /api; /openapi.json describes every route, and /llms.txt
tells a model how to use it.
`
	withConsole = "A browser finds the web console here."
	noConsole   = "The web console is not part of this build: install npm and run make build."
)

// front shows the console to a browser, and a text to who asks for no page.
func (c *call) front() error {
	c.w.Header().Add("Vary", "Accept")
	said := noConsole
	if c.api.Console != nil {
		if strings.Contains(c.r.Header.Get("Accept"), "text/html") && c.api.Console.Serve(c.w, c.r, "") {
			return nil
		}
		said = withConsole
	}
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintf(c.w, frontPage+"%s", said, c.identity()) // the client may be gone
	return nil
}
