package engine

import (
	"context"
	"encoding/json"

	"github.com/cove-sandbox/cove"
)

// tellRun tells the journal and the observer how a run ended: by whom it was answered,
// and which rule refused it, if one did. What was asked the intent has.
func (e *Engine) tellRun(ctx context.Context, rec *cove.Run) {
	a := rec.Answer
	about := map[string]string{"run": string(rec.ID), "status": a.Status}
	ev := &cove.Event{
		Kind: cove.RunEnded, Phase: cove.EngineNote, Principal: rec.Owner, Tenant: rec.Tenant,
		Session: rec.Request.Session, Provider: a.Provider, Wall: rec.EndedAt.Sub(rec.CreatedAt),
	}
	if a.Error != nil {
		about["type"] = a.Error.Type
	}
	if d := rec.Decision; d != nil && d.Refusal != nil {
		ev.Effect, ev.Rule = cove.Deny, d.Refusal.Rule
	}
	ev.Data, _ = json.Marshal(about) // a map of strings cannot fail
	if err := e.cfg.Journal.Append(ctx, ev, false); err != nil {
		e.cfg.Logger.ErrorContext(ctx, "journal note", errAttr(err))
	}
	if e.cfg.Observer == nil {
		return
	}
	h := cove.Happening{
		Observed: cove.Observed{Tenant: rec.Tenant, Session: rec.Request.Session, Provider: a.Provider, Thread: short(rec.Request.Thread)},
		Kind:     cove.RunEnded, Instead: a.Instead, Run: rec.ID, Query: rec.Request.Type, Status: a.Status, Wall: ev.Wall,
	}
	if a.Error != nil {
		h.Fault = a.Error.Type
	}
	e.cfg.Observer.Note(ctx, h)
}
