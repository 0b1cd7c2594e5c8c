//go:build !lean

package daemon

import (
	"log/slog"

	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/chat"
	"github.com/cove-sandbox/cove/internal/chat/openai"
	"github.com/cove-sandbox/cove/internal/config"
)

// chats gives an engine what answers messages: queries always, and the rest where the
// settings name a model. Nobody asks the model yet whether it is there: it may come
// later, and queries do without.
func chats(ec *engine.Config, cfg config.Config, logger *slog.Logger) (end func() error, err error) {
	c := chat.Config{Rounds: cfg.Model.Rounds}
	for _, s := range []struct{ name, value string }{{"COVE_MODEL_URL", cfg.Model.URL}, {"COVE_MODEL", cfg.Model.Name}} {
		if s.value == "" {
			c.Missing = append(c.Missing, s.name)
		}
	}
	end = func() error { return nil }
	if c.Missing == nil {
		m, err := openai.New(openai.Config{
			URL: cfg.Model.URL, Key: cfg.Model.Key.Reveal(), Model: cfg.Model.Name, Timeout: cfg.Model.Timeout, Logger: logger,
		})
		if err != nil {
			return nil, err
		}
		c.Model = m
		end = func() error { m.Close(); return nil }
	}
	r, err := chat.New(c)
	if err != nil {
		return nil, err
	}
	ec.Responder = r
	return end, nil
}
