package chat

import (
	"context"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Config is what answering needs.
type Config struct {
	// Model answers what is no query. nil: only queries are answered.
	Model Model
	// Missing are the settings for want of which there is no model.
	Missing []string
	// Rounds is how often the model is asked for one message at most.
	Rounds int
}

// Chat answers messages. It implements [cove.Responder] and is safe for concurrent
// use.
type Chat struct{ cfg Config }

var _ cove.Responder = (*Chat)(nil)

// Bounds on answering one message.
const (
	maxTime   = 10 * time.Minute
	maxRounds = 64
)

// New returns what answers messages.
func New(cfg Config) (*Chat, error) {
	if cfg.Model != nil && (cfg.Rounds < 1 || cfg.Rounds > maxRounds) {
		return nil, cove.InvalidField("COVE_MODEL_ROUNDS", "%d is out of range; use 1 to %d", cfg.Rounds, maxRounds)
	}
	return &Chat{cfg: cfg}, nil
}

// Respond implements [cove.Responder]. Of the answer's message it knows the text, the
// runs and the error; the rest is for whoever keeps it.
func (c *Chat) Respond(ctx context.Context, p cove.Platform, history []*cove.Message, req cove.ChatRequest) (*cove.ChatAnswer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, cove.Errorf(cove.Timeout, "the message had no answer after %s", maxTime).Remedy("ask for less at once"))
	defer cancel()
	t := &talk{platform: p, req: req, answer: &cove.ChatAnswer{Thread: req.Thread}}
	kind, query, ok := direct(req.Message)
	switch {
	case ok && query == "":
		return nil, cove.InvalidField("message", "has no query after %s:", strings.ToUpper(string(kind)))
	case ok:
		return t.asItIs(ctx, kind, query)
	case c.cfg.Model == nil:
		return nil, c.noModel()
	}
	return c.converse(ctx, t, history)
}

// noModel is the error for what only a model could answer. It names what is missing.
func (c *Chat) noModel() error {
	const instead = "begin the message with SQL: or PYTHON:"
	if len(c.cfg.Missing) == 0 {
		return cove.Errorf(cove.Unsupported, "natural language needs a model, and this build has none").Remedy(instead)
	}
	verb, them := "is", "it"
	if len(c.cfg.Missing) > 1 {
		verb, them = "are", "them"
	}
	return cove.Errorf(cove.Unsupported, "natural language needs a model, and %s %s not set", strings.Join(c.cfg.Missing, " and "), verb).
		With("missing", c.cfg.Missing).Remedy("set %s, or %s", them, instead)
}
