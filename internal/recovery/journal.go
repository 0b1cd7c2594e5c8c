package recovery

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/cove-sandbox/cove"
)

// told is what the journal says of a session that was opened and has not ended.
type told struct{ tenant, owner, provider string }

// endings are the engine's own words for the end of a session.
var endings = []string{"session.expired", "session.lost", "session.aborted", "session.overrun", "session.let_go", discarded}

// fromJournal reads which sessions were opened and have not ended, and whether any
// was ever opened.
func fromJournal(ctx context.Context, j cove.Journal) (open map[cove.ID]told, any bool, err error) {
	open = map[cove.ID]told{}
	for e, err := range j.Events(ctx, cove.EventFilter{}) {
		if err != nil {
			return nil, false, err
		}
		switch id := opened(&e); {
		case id != "":
			open[id], any = told{e.Tenant, e.Principal, e.Provider}, true
		case e.Kind == string(cove.SessionClose) && e.Phase == cove.AfterIt && e.Code == "",
			e.Phase == cove.EngineNote && slices.Contains(endings, e.Kind):
			delete(open, e.Session)
		}
	}
	return open, any, nil
}

// opened returns the session that a line says was opened, or "".
func opened(e *cove.Event) cove.ID {
	if e.Phase != cove.AfterIt || e.Code != "" {
		return ""
	}
	switch e.Kind {
	case string(cove.SessionOpen):
		return e.Session
	case string(cove.SnapshotFork):
		var data struct {
			Made cove.ID `json:"made"`
		}
		if json.Unmarshal(e.Data, &data) == nil && data.Made.Valid() {
			return data.Made
		}
	}
	return ""
}
