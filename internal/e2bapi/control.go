package e2bapi

import (
	"net/http"

	"github.com/cove-sandbox/cove"
)

// controlRoutes are the routes of the control API about sandboxes.
func controlRoutes() map[string]action {
	return map[string]action{
		"POST /sandboxes":                 (*call).create,
		"POST /v2/sandboxes":              (*call).create,
		"GET /sandboxes":                  (*call).listRunning,
		"GET /v2/sandboxes":               (*call).list,
		"GET /sandboxes/metrics":          (*call).manyMetrics,
		"GET /sandboxes/{id}":             (*call).info,
		"DELETE /sandboxes/{id}":          (*call).kill,
		"POST /sandboxes/{id}/connect":    (*call).connectSandbox,
		"POST /v2/sandboxes/{id}/connect": (*call).connectSandbox,
		"POST /sandboxes/{id}/resume":     (*call).resumeOnly,
		"POST /sandboxes/{id}/refreshes":  (*call).refresh,
		"POST /sandboxes/{id}/timeout":    (*call).setTimeout,
		"POST /sandboxes/{id}/pause":      (*call).pause,
		"GET /sandboxes/{id}/metrics":     (*call).metrics,
		"GET /sandboxes/{id}/logs":        (*call).logs,
		"GET /v2/sandboxes/{id}/logs":     (*call).logs,
		"PUT /sandboxes/{id}/network":     (*call).setNetwork,
		"POST /sandboxes/{id}/fork":       (*call).fork,
		"POST /sandboxes/{id}/snapshots":  (*call).snapshot,
		"GET /snapshots":                  (*call).listSnapshots,
		"DELETE /templates/{id}":          (*call).deleteTemplate,
		"GET /secrets":                    (*call).listSecrets,
		"POST /secrets":                   (*call).changeSecret,
		"GET /secrets/{id}":               (*call).secret,
		"POST /secrets/{id}":              (*call).changeSecret,
		"DELETE /secrets/{id}":            (*call).changeSecret,
	}
}

// envdVersion is the version of E2B's agent that the SDKs take ours for: it turns
// everything on that they can do.
const envdVersion = "0.6.13"

// clientID fills a field that means nothing any more.
const clientID = "cove"

// sandboxAnswer says how a sandbox is reached.
type sandboxAnswer struct {
	Template string `json:"templateID"`
	Alias    string `json:"alias,omitempty"`
	Sandbox  string `json:"sandboxID"`
	Client   string `json:"clientID"`
	Version  string `json:"envdVersion"`
	Access   string `json:"envdAccessToken,omitempty"`
	Traffic  string `json:"trafficAccessToken,omitempty"`
	Domain   string `json:"domain,omitempty"`
}

// sandboxOf tells the caller how a sandbox is reached, with tokens of the caller's own.
func (c *call) sandboxOf(s *cove.Session) sandboxAnswer {
	a := sandboxAnswer{
		Template: templateOf(s), Alias: s.Spec.Template, Sandbox: string(s.ID), Client: clientID, Version: envdVersion,
		Access: c.accessToken(s.ID), Domain: c.h.cfg.Domain,
	}
	if !s.Spec.PublicPorts {
		a.Traffic = c.tokenFor(kindTraffic, s.ID, cove.ScopeExec)
	}
	return a
}

// templateOf is what a sandbox was made from: there, a snapshot is a template, too.
func templateOf(s *cove.Session) string {
	if s.Spec.Snapshot != "" {
		return string(s.Spec.Snapshot)
	}
	return s.Spec.Template
}

// target is the sandbox that a path names.
func (c *call) target() (cove.ID, error) {
	id := cove.ID(c.r.PathValue("id"))
	if !id.Valid() {
		return "", noSandbox(id)
	}
	return id, nil
}

func noSandbox(id cove.ID) error {
	return cove.Errorf(cove.NotFound, "there is no sandbox %q", clip(string(id)))
}

// session returns the session that a path names, if it lives.
func (c *call) session() (*cove.Session, error) {
	id, err := c.target()
	if err != nil {
		return nil, err
	}
	s, err := c.platform.Sessions().Get(c.r.Context(), id)
	if err == nil && !s.State.Live() {
		return nil, noSandbox(id)
	}
	return s, err
}

// maxBody bounds a JSON body of the control API.
const maxBody = 1 << 20

// body reads the JSON of a call into v. None at all is an empty object. Fields that
// we do not know are left out: newer clients have more than older servers.
func (c *call) body(v any) error {
	text, err := c.readAll(maxBody)
	if err != nil || len(text) == 0 {
		return err
	}
	return understand(text, v)
}

// done answers with nothing.
func (c *call) done() {
	c.w.WriteHeader(http.StatusNoContent)
}

// health reports whether the sandbox runs. It wakes nobody.
func (c *call) health() error {
	s, err := c.platform.Sessions().Get(c.r.Context(), c.id)
	switch {
	case err != nil:
		return err
	case s.State != cove.Running:
		c.gone()
	default:
		c.done()
	}
	return nil
}

// logs are empty: what programs write is theirs, and the journal is the operator's.
func (c *call) logs() error {
	if _, err := c.session(); err != nil {
		return err
	}
	c.answer(http.StatusOK, map[string][]struct{}{"logs": {}, "logEntries": {}})
	return nil
}
