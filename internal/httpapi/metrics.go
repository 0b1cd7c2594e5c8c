package httpapi

import (
	"net/http"
	"time"

	"github.com/cove-sandbox/cove"
)

// metricsType is the media type of Prometheus' text.
const metricsType = "text/plain; version=0.0.4"

func metricRoutes() []route {
	return []route{
		{method: http.MethodGet, pattern: "/metrics", summary: "Read the server's metrics; needs the scope metrics or admin", gives: metricsType, deed: deed{status: http.StatusOK, do: (*call).metrics}},
	}
}

// metrics shows the numbers of all tenants. Who lacks the scope is asked what
// only an operator may ask, so that the platform refuses and writes it down.
func (c *call) metrics() error {
	if !c.who.May(cove.ScopeMetrics) {
		_, err := c.platform.Admin().Tasks(c.r.Context())
		if cove.CodeOf(err) == cove.Denied {
			return cove.Wrap(cove.Denied, err, "/metrics needs the scope metrics or admin, which this key does not hold").
				Remedy("make one with: cove key create --scope metrics")
		}
		if err != nil {
			return err
		}
	}
	if c.api.Metrics == nil {
		return cove.Errorf(cove.Unsupported, "this server keeps no metrics").Remedy("ask a server that cove serve started")
	}
	c.deadline()
	c.api.Metrics.ServeHTTP(c.w, c.r)
	return nil
}

// Ending is how a request went.
type Ending struct {
	Method    string
	Route     string // its pattern, or "" for a path that is no route
	Status    int
	Wall      time.Duration
	Err       error // that was answered with, if any
	Principal string
	Tenant    string
	Session   cove.ID // that the path names, if it has the form of one
}

// begun tells that a caller is known.
func (c *call) begun() {
	if c.api.Begin != nil {
		c.r = c.r.WithContext(c.api.Begin(c.r, c.route))
	}
}

// ended tells how the request went.
func (c *call) ended(wall time.Duration) {
	if c.api.End == nil {
		return
	}
	e := Ending{
		Method: c.r.Method, Route: c.route, Status: c.w.status, Wall: wall, Err: c.failed,
		Principal: c.who.Name, Tenant: c.who.Tenant,
	}
	if id := c.session(); id.Valid() {
		e.Session = id
	}
	c.api.End(c.r.Context(), e)
}
