package e2bapi

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/cove-sandbox/cove"
)

// marked is an id that says which server has what it names.
func (h *Handler) marked(id string) string {
	if h.cfg.Mark == "" {
		return id
	}
	return id + "." + h.cfg.Mark
}

type handedOn struct{}

// Here is the handler for requests that another server handed on: they are not handed
// on again.
func (h *Handler) Here() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), handedOn{}, true)))
	})
}

// handOn has the server answer that has what an id names, if that is another one, and
// reports whether it did. That server asks once more who the caller is. What is kept
// at a server that is gone is gone, for which this one has the words.
func (c *call) handOn(id string) (done bool, err error) {
	_, mark, ok := strings.Cut(id, ".")
	if !ok || c.h.cfg.Mark == "" || mark == c.h.cfg.Mark || c.r.Context().Value(handedOn{}) != nil {
		return false, nil
	}
	to, err := c.h.cfg.Elsewhere(c.r.Context(), mark, func(_ http.ResponseWriter, _ *http.Request, err error) { c.fail(err) })
	if cove.CodeOf(err) == cove.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	to.ServeHTTP(c.w, c.r)
	return true, nil
}

// atWatcher does what a call asks of a watcher, at the server that has it.
func (c *call) atWatcher(do func() error) error {
	if err := c.speaks(unaryType); err != nil {
		return err
	}
	body, err := c.whole()
	if err != nil {
		return err
	}
	c.r.Body, c.r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	var in watcherMessage
	if err := understand(body, &in); err != nil {
		return err
	}
	if done, err := c.handOn(in.ID); done || err != nil {
		return err
	}
	return do()
}

// atBuild does what a call asks of a build, at the server that has it.
func (c *call) atBuild(do func() error) error {
	if done, err := c.handOn(c.r.PathValue("build")); done || err != nil {
		return err
	}
	return do()
}
