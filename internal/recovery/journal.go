package recovery

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/cove-sandbox/cove"
)

// journaled is what the journal says of sessions.
type journaled struct {
	open map[cove.ID]opening // those that have not ended
	any  bool                // whether any was ever opened
}

// opening is what the journal says of a session that was opened.
type opening struct{ tenant, owner, provider string }

// endings are the engine's own words for the end of a session.
var endings = []string{"session.expired", "session.lost", "session.aborted", "session.overrun", "session.let_go", discarded}

// fromJournal reads which sessions were opened and have not ended.
func fromJournal(ctx context.Context, j cove.Journal) (journaled, error) {
	told := journaled{open: map[cove.ID]opening{}}
	for e, err := range j.Events(ctx, cove.EventFilter{}) {
		if err != nil {
			return told, err
		}
		switch id := opened(&e); {
		case id != "":
			told.open[id], told.any = opening{e.Tenant, e.Principal, e.Provider}, true
		case e.Kind == string(cove.SessionClose) && e.Phase == cove.AfterIt && e.Code == "",
			e.Phase == cove.EngineNote && slices.Contains(endings, e.Kind):
			delete(told.open, e.Session)
		}
	}
	return told, nil
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
