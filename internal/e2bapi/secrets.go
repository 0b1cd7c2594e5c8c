package e2bapi

import (
	"net/http"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
)

// secretAnswer is a secret without what is secret of it.
type secretAnswer struct {
	ID       string            `json:"secretID"`
	Name     string            `json:"name"`
	Version  int               `json:"currentVersion"`
	Metadata map[string]string `json:"metadata"`
	Created  time.Time         `json:"createdAt"`
	Updated  time.Time         `json:"updatedAt"`
}

// secretNames are the names of the operator's secrets that the caller may see.
func (c *call) secretNames() []string {
	if c.h.cfg.Secrets == nil {
		return nil
	}
	return c.h.cfg.Secrets(c.who)
}

// secretOf tells about a secret. It is as old as this server knows: it is read from the
// settings when the server starts.
func (c *call) secretOf(name string) secretAnswer {
	return secretAnswer{ID: name, Name: name, Version: 1, Metadata: map[string]string{}, Created: c.h.started, Updated: c.h.started}
}

// listSecrets tells the names of the operator's secrets, all on one page.
func (c *call) listSecrets() error {
	out := []secretAnswer{}
	for _, name := range slices.Sorted(slices.Values(c.secretNames())) {
		out = append(out, c.secretOf(name))
	}
	c.answer(http.StatusOK, out)
	return nil
}

func (c *call) secret() error {
	name := c.r.PathValue("id")
	if !slices.Contains(c.secretNames(), name) {
		return cove.Errorf(cove.NotFound, "there is no secret %q", clip(name))
	}
	c.answer(http.StatusOK, c.secretOf(name))
	return nil
}

// changeSecret says whose secrets are.
func (c *call) changeSecret() error {
	return cove.Errorf(cove.Unsupported, "secrets are written in the settings of the server").
		Remedy("ask its operator for one, under secrets in the configuration file")
}
