package mcpserver

import (
	"context"
	"errors"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/agenttool"
)

// where says in which session a tool works.
type where struct {
	Session  string
	Template string
}

// place is where a tool worked.
type place struct {
	Session   string `json:"session_id,omitempty" jsonschema:"the session it ran in"`
	Created   bool   `json:"session_created,omitempty" jsonschema:"the session was made for this call"`
	Recreated bool   `json:"session_recreated,omitempty" jsonschema:"the session from before is gone, with its files and variables, and this is a new one"`
	Restarted bool   `json:"session_restarted,omitempty" jsonschema:"the session had been stopped and was started again: its files are kept, variables and programs that ran are gone"`
}

// notes are the words about a place that a model must not miss.
func (p place) notes() string {
	if p.Recreated {
		return "[the session from before has ended: this is a new one, without its files and variables]"
	}
	return agenttool.Notes(&cove.Execution{Restarted: p.Restarted})
}

// in runs do in the session that is meant: the named one, or the caller's own. A
// stopped one is started. Where the caller's own has ended, which a refusal says
// before anything has run, it is made again, once, and the place says so.
func (c *call) in(ctx context.Context, w where, do func(ctx context.Context, id cove.ID) error) (place, error) {
	if w.Session == "" && w.Template == "" {
		w.Session = string(c.face.Session)
	}
	if w.Session != "" {
		return c.inNamed(ctx, w, do)
	}
	id, made, err := c.peer.sandbox(ctx, w.Template)
	if err != nil {
		return place{}, err
	}
	at := place{Session: string(id), Created: made}
	err = do(ctx, id)
	switch cove.ReasonOf(err) {
	case cove.ReasonNodeLost, cove.ReasonNoSession:
		c.peer.forget(ctx, id) // something may have run in it: only the next call has a new one
	case cove.ReasonSessionStopped, cove.ReasonSessionExpired, cove.ReasonSessionClosed:
		gone := cove.ReasonOf(err) != cove.ReasonSessionStopped
		c.peer.forget(ctx, id)
		if id, made, err = c.peer.sandbox(ctx, w.Template); err != nil {
			return at, err
		}
		at = place{Session: string(id), Created: made, Recreated: gone, Restarted: !gone && !made}
		return at, do(ctx, id)
	}
	return at, err
}

func (c *call) inNamed(ctx context.Context, w where, do func(ctx context.Context, id cove.ID) error) (place, error) {
	id, err := sessionID(w.Session)
	if err != nil {
		return place{}, err
	}
	if w.Template != "" {
		return place{}, cove.InvalidField("template", "the session that session_id names has its own; leave one of them out")
	}
	at := place{Session: w.Session}
	err = do(ctx, id)
	if !errors.Is(err, cove.Conflict) || cove.ReasonOf(err) != cove.ReasonSessionStopped {
		return at, err
	}
	if _, err := c.platform.Sessions().Start(ctx, id); err != nil {
		return at, err
	}
	at.Restarted = true
	return at, do(ctx, id)
}

func sessionID(name string) (cove.ID, error) {
	if id := cove.ID(name); id.Valid() {
		return id, nil
	}
	return "", cove.InvalidField("session_id", "%.80q is not the id of a session; get_sessions lists them", name)
}
