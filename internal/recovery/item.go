package recovery

import (
	"cmp"
	"strings"

	"github.com/cove-sandbox/cove"
)

// Item is something that was found and that the database does not know, or knows in an
// older version only.
type Item struct {
	Kind     Kind       `json:"kind"`
	ID       cove.ID    `json:"id"`
	Tenant   string     `json:"tenant,omitempty"`
	Owner    string     `json:"owner,omitempty"`
	Name     string     `json:"name,omitempty"` // of a snapshot or a volume; of a session its user and thread
	Provider string     `json:"provider,omitempty"`
	Template string     `json:"template,omitempty"`
	State    cove.State `json:"state,omitempty"` // that a session has when it is taken up
	Left     Left       `json:"left"`
	Source   Source     `json:"source"`
	Older    bool       `json:"older,omitempty"` // the database has an older version of it

	session  *cove.Session
	snapshot *cove.Snapshot
	volume   *cove.SavedVolume
}

// Left is what there is of an item beside records.
type Left string

// What there may be. Nothing is a session whose sandbox is gone and that has no
// archive: it is lost. Unknown is one whose provider does not say.
const (
	Sandbox Left = "sandbox"
	Archive Left = "archive"
	Files   Left = "files"
	Nothing Left = "nothing"
	Unknown Left = "unknown"
)

// Source is where an item's record is made from.
type Source string

// Where a record may be made from. Of a session that only the journal knows, tenant,
// owner and provider are those of the journal, and all else is that of a request that
// says nothing. Of one that nothing speaks of, the tenant is the default one, too.
const (
	FromCopy    Source = "copy"
	FromJournal Source = "journal"
	FromNothing Source = "none"
)

func sessionItem(s *cove.Session, left Left, from Source) Item {
	name := s.Spec.User
	if s.Spec.Thread != "" {
		name += "/" + s.Spec.Thread
	}
	item := Item{
		Kind: Session, ID: s.ID, Tenant: s.Tenant, Owner: s.Owner, Name: strings.TrimPrefix(name, "/"), Provider: s.Provider,
		Template: s.Spec.Template, State: s.State, Left: left, Source: from, session: s,
	}
	switch left {
	case Archive:
		item.State = cove.Stopped
	case Nothing:
		item.State = cove.Ended
	case Sandbox, Unknown:
		switch s.State { //nolint:exhaustive // the others stay what they are
		case cove.Stopped:
			item.State = cove.Running
		case cove.Failed:
			item.State = cmp.Or(s.Was, cove.Running)
		}
	case Files:
	}
	return item
}

// cause is why a session that is taken up is in its state. Without one the server stopped
// it, so that it comes back by itself.
func (i Item) cause() string {
	switch s := i.session; i.State {
	case s.State:
		return s.Cause
	case s.Was:
		return s.WasCause
	}
	return ""
}
