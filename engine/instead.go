package engine

import (
	"context"
	"log/slog"

	"github.com/cove-sandbox/cove"
)

// sayInstead tells the journal, the log and the observer that another provider
// serves a session than the one that was to. The answer says it by itself.
func (e *Engine) sayInstead(ctx context.Context, s *cove.Session, why error) {
	e.noteOf(ctx, "session.instead", s, map[string]string{"instead_of": s.Instead, "reason": cove.MessageOf(why)})
	e.cfg.Logger.WarnContext(ctx, "served by another provider", sessionAttr(s.ID), providerAttr(s.Provider),
		slog.String("instead_of", s.Instead), slog.String("reason", cove.MessageOf(why)))
}
