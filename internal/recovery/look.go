package recovery

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
)

// Site is what is compared: the database with its copies, and what there is beside it.
type Site struct {
	Copies    *Copies
	Archives  cove.Archives
	Folders   cove.Folders // nil: there are no volumes
	Providers []cove.Provider
	Chosen    []string // those that are asked for sandboxes; others are where a record names them
	Journal   cove.Journal
	Node      string // in records that are made again; "" where a server is alone
	// Spec is that of a session of which only the provider is known.
	Spec func(provider string) cove.Spec
	// Keep is how long a stopped session is kept that is taken up.
	Keep   time.Duration
	Logger *slog.Logger
}

// Look compares the database with the copies of its records, and with sandboxes,
// archives and the journal where it was empty. It returns what the database does not
// know, or knows in an older version only, and changes nothing then. Where that is
// nothing it brings the copies up to date. A session of which nothing is left is lost,
// and is told to the journal and the log; it is returned only beside others, or where
// the database was empty.
func (s *Site) Look(ctx context.Context) ([]Item, error) {
	fresh, err := s.Copies.fresh()
	if err != nil {
		return nil, err
	}
	names, err := s.Copies.names()
	if err != nil {
		return nil, err
	}
	doubtful, err := s.newerSessions(ctx, names[Session])
	if err != nil {
		return nil, err
	}
	files, err := s.unknownFiles(ctx, names)
	if err != nil {
		return nil, err
	}
	if len(doubtful)+len(files) == 0 && !fresh {
		return nil, s.refresh(ctx, names)
	}
	var told journaled
	if fresh || slices.ContainsFunc(slices.Collect(maps.Values(doubtful)), func(d *doubt) bool { return d.rec == nil }) {
		if told, err = fromJournal(ctx, s.Journal); err != nil {
			return nil, err
		}
	}
	there, err := s.lookAround(ctx, providersOf(doubtful, told))
	if err != nil {
		return nil, err
	}
	items, err := s.judge(ctx, there, doubtful, told, fresh)
	if err != nil {
		return nil, err
	}
	lost := func(i Item) bool { return i.Left == Nothing }
	if len(files) == 0 && (len(items) == 0 || !fresh && !slices.ContainsFunc(items, func(i Item) bool { return !lost(i) })) {
		return nil, errors.Join(s.tellLost(ctx, items), s.refresh(ctx, names), s.Copies.settled())
	}
	slices.SortFunc(items, func(a, b Item) int { return cmp.Compare(a.ID, b.ID) })
	return append(items, files...), nil
}

// newerSessions returns the copies that the database does not know, or knows in an
// older version. A session that was still being made was given to no caller yet.
func (s *Site) newerSessions(ctx context.Context, ids []cove.ID) (map[cove.ID]*doubt, error) {
	found := map[cove.ID]*doubt{}
	for _, id := range ids {
		known, err := s.Copies.GetSession(ctx, id)
		if err != nil && cove.CodeOf(err) != cove.NotFound {
			return nil, err
		}
		var rec cove.Session
		readable := s.Copies.folder.Read(Session, string(id), &rec) && rec.ID == id
		switch {
		case known != nil && (!readable || known.Version >= rec.Version):
		case readable && rec.State == cove.Creating:
		case readable:
			found[id] = &doubt{rec: &rec, older: known != nil}
		default:
			found[id] = &doubt{}
		}
	}
	return found, nil
}

// doubt is a session that the database does not know well enough.
type doubt struct {
	rec   *cove.Session // nil: its copy cannot be read
	older bool
}

// unknownFiles returns snapshots and volumes that the database does not know. Those
// that were being made or removed are left where they are.
func (s *Site) unknownFiles(ctx context.Context, names map[Kind][]cove.ID) (found []Item, err error) {
	for _, id := range names[Snapshot] {
		var rec cove.Snapshot
		_, err := s.Copies.GetSnapshot(ctx, id)
		if err != nil && cove.CodeOf(err) != cove.NotFound {
			return nil, err
		}
		if err != nil && s.Copies.folder.Read(Snapshot, string(id), &rec) && !rec.Pending {
			found = append(found, Item{
				Kind: Snapshot, ID: id, Tenant: rec.Tenant, Name: rec.Name, Provider: rec.Provider, Template: rec.Template,
				Left: Files, Source: FromCopy, snapshot: &rec,
			})
		}
	}
	for _, id := range names[Volume] {
		var rec cove.SavedVolume
		_, err := s.Copies.GetVolume(ctx, id)
		if err != nil && cove.CodeOf(err) != cove.NotFound {
			return nil, err
		}
		if err != nil && s.Copies.folder.Read(Volume, string(id), &rec) && !rec.Pending {
			found = append(found, Item{Kind: Volume, ID: id, Tenant: rec.Tenant, Name: rec.Name, Left: Files, Source: FromCopy, volume: &rec})
		}
	}
	return found, nil
}

// surroundings are the sandboxes and archives that there are.
type surroundings struct {
	archives  map[cove.ID]bool
	sandboxes map[cove.ID]string // the provider of each
	silent    map[string]bool    // providers that do not say
}

// providersOf are the providers that records and the journal name.
func providersOf(doubtful map[cove.ID]*doubt, told journaled) (names []string) {
	for _, d := range doubtful {
		if d.rec != nil {
			names = append(names, d.rec.Provider)
		}
	}
	for _, said := range told.open {
		names = append(names, said.provider)
	}
	return names
}

// lookAround lists the archives, and the sandboxes of providers that are chosen or
// named. Others may be far away, and have nothing of this home.
func (s *Site) lookAround(ctx context.Context, named []string) (*surroundings, error) {
	there := &surroundings{archives: map[cove.ID]bool{}, sandboxes: map[cove.ID]string{}, silent: map[string]bool{}}
	for id, err := range s.Archives.List(ctx) {
		if err != nil {
			return nil, err
		}
		there.archives[id] = true
	}
	for _, p := range s.Providers {
		if !slices.Contains(s.Chosen, p.Name()) && !slices.Contains(named, p.Name()) {
			continue
		}
		listed, cancel := context.WithTimeout(ctx, listTime)
		for id, err := range p.List(listed) {
			if err != nil {
				s.Logger.WarnContext(ctx, "a provider does not say which sandboxes it has", slog.String("provider", p.Name()), slog.Any("error", err))
				there.silent[p.Name()] = true
				break
			}
			there.sandboxes[id] = p.Name()
		}
		cancel()
	}
	return there, nil
}

// listTime bounds how long a provider may take to name its sandboxes.
const listTime = 10 * time.Second

// of returns what there is of a session.
func (t *surroundings) of(rec *cove.Session) Left {
	_, sandbox := t.sandboxes[rec.ID]
	switch archive := t.archives[rec.ID]; {
	case archive && (rec.State == cove.Stopped || !sandbox):
		return Archive
	case sandbox:
		return Sandbox
	case t.silent[rec.Provider]:
		return Unknown
	}
	return Nothing
}

// judge makes items of what is doubtful. What has no copy that can be read is made from
// the journal. In a database that was empty that is all that there is: archives, sandboxes
// of sessions that the journal says have not ended, and such sessions of which nothing is
// left. Where the journal knows of no session, it was lost as well, and each sandbox is
// taken for that of one.
func (s *Site) judge(ctx context.Context, there *surroundings, doubtful map[cove.ID]*doubt, told journaled, fresh bool) (items []Item, err error) {
	blind := map[cove.ID]bool{}
	for id, d := range doubtful {
		if d.rec == nil {
			blind[id] = true
			continue
		}
		item := sessionItem(d.rec, there.of(d.rec), FromCopy)
		item.Older = d.older
		items = append(items, item)
	}
	if fresh {
		maps.Copy(blind, there.archives) // whatever the journal says: what is in them was to be kept
		for id := range told.open {
			blind[id] = true
		}
		for id := range there.sandboxes {
			blind[id] = blind[id] || !told.any
		}
	}
	for id, wanted := range blind {
		if d := doubtful[id]; !wanted || d != nil && d.rec != nil {
			continue
		}
		if _, err := s.Copies.GetSession(ctx, id); cove.CodeOf(err) != cove.NotFound {
			if err != nil {
				return nil, err
			}
			continue // it was taken up before the server was stopped
		}
		rec, from := s.blank(id, there.sandboxes[id], told.open)
		items = append(items, sessionItem(rec, there.of(rec), from))
	}
	return items, nil
}

// blank is the record of a session of which little is known.
func (s *Site) blank(id cove.ID, provider string, open map[cove.ID]opening) (*cove.Session, Source) {
	said, ok := open[id]
	from := FromJournal
	if !ok {
		from = FromNothing
	}
	now := time.Now()
	spec := s.Spec(cmp.Or(provider, said.provider))
	return &cove.Session{
		ID: id, Tenant: cmp.Or(said.tenant, cove.DefaultTenant), Owner: cmp.Or(said.owner, "recovered"), Spec: spec, State: cove.Running,
		Provider: spec.Provider, Node: s.Node, Memory: spec.Resources.Memory, CreatedAt: now, LastActivity: now, ExpiresAt: now.Add(spec.Idle),
	}, from
}

// tellLost ends sessions of which nothing is left, and tells the log and the journal.
func (s *Site) tellLost(ctx context.Context, lost []Item) error {
	for _, item := range lost {
		s.Logger.WarnContext(ctx, "session lost: the database has no record of it, or only an older one, and neither a sandbox nor an archive of it is left",
			slog.String("session", string(item.ID)), slog.String("tenant", item.Tenant), slog.String("provider", item.Provider))
		if err := s.note(ctx, "session.lost", "", item, "the database has no record of it, or only an older one, and nothing of it is left"); err != nil {
			return err
		}
		if !item.Older {
			s.Copies.folder.Remove(ctx, item.Kind, string(item.ID))
			continue
		}
		rec, err := s.Copies.GetSession(ctx, item.ID)
		if err == nil {
			rec.State, rec.Cause, rec.EndedAt = cove.Ended, cove.ReasonNodeLost, time.Now()
			err = s.Copies.PutSession(ctx, rec)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refresh brings the copies up to date with the database, which knows all of them.
func (s *Site) refresh(ctx context.Context, names map[Kind][]cove.ID) error {
	c := s.Copies
	for rec, err := range c.Sessions(ctx, cove.SessionFilter{}) {
		if err != nil {
			return err
		}
		var old cove.Session
		if !c.folder.Read(Session, string(rec.ID), &old) || old.Version < rec.Version {
			c.folder.Write(ctx, Session, string(rec.ID), rec)
		}
	}
	for rec, err := range c.Snapshots(ctx, cove.SnapshotFilter{}) {
		if err != nil {
			return err
		}
		if !slices.Contains(names[Snapshot], rec.ID) {
			c.folder.Write(ctx, Snapshot, string(rec.ID), rec)
		}
	}
	for rec, err := range c.Volumes(ctx, cove.VolumeFilter{}) {
		if err != nil {
			return err
		}
		if !slices.Contains(names[Volume], rec.ID) {
			c.folder.Write(ctx, Volume, string(rec.ID), rec)
		}
	}
	for _, id := range names[Session] {
		rec, err := c.GetSession(ctx, id)
		if cove.CodeOf(err) == cove.NotFound || err == nil && rec.State == cove.Ended {
			c.folder.Remove(ctx, Session, string(id))
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}
