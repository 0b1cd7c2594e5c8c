package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
)

// The journal's words for what an operator decided.
const (
	takenUp   = "recovery.taken_up"
	discarded = "recovery.discarded"
)

// TakeUp makes the records of all that Look finds, so that an engine which opens the
// database goes on with it, and returns what it did. A session of which nothing is left
// is forgotten and told to the journal as lost. What cannot be done is in the error;
// all else is done.
func (s *Site) TakeUp(ctx context.Context, by string) (done []Item, failed error) {
	items, err := s.Look(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.endForgotten(ctx, items); err != nil {
		return nil, err
	}
	for _, item := range items {
		if err := s.takeUp(ctx, by, item); err != nil {
			failed = errors.Join(failed, cove.Wrap(cove.CodeOf(err), err, "%s %s: %s", item.Kind, item.ID, cove.MessageOf(err)))
			continue
		}
		done = append(done, item)
	}
	if failed != nil {
		return done, failed
	}
	return done, s.Copies.settled()
}

func (s *Site) takeUp(ctx context.Context, by string, item Item) error {
	if item.Left == Nothing {
		return s.tellLost(ctx, []Item{item})
	}
	if err := s.note(ctx, takenUp, by, item, ""); err != nil {
		return err
	}
	switch {
	case item.snapshot != nil:
		return s.Copies.PutSnapshot(ctx, item.snapshot)
	case item.volume != nil:
		return s.Copies.PutVolume(ctx, item.volume)
	}
	rec := *item.session
	rec.State, rec.Cause, rec.Was, rec.WasCause, rec.Node, rec.Version = item.State, item.cause(), "", "", s.Node, 0
	rec.Archived = item.Left == Archive
	if rec.Archived {
		rec.ExpiresAt = time.Now().Add(s.Keep) // its time may have run out while it could not be used
	}
	known, err := s.Copies.GetSession(ctx, rec.ID)
	switch {
	case err == nil:
		rec.Version = known.Version
	case cove.CodeOf(err) != cove.NotFound:
		return err
	}
	return s.Copies.PutSession(ctx, &rec)
}

// endForgotten ends sessions that an older database calls live and that have no copy,
// no sandbox and no archive: they ended after that database was copied, and would keep
// others from the same user and thread.
func (s *Site) endForgotten(ctx context.Context, items []Item) error {
	if !slices.ContainsFunc(items, func(i Item) bool { return i.Kind == Session }) {
		return nil
	}
	names, err := s.Copies.names()
	if err != nil {
		return err
	}
	var forgotten []*cove.Session
	var providers []string
	for rec, err := range s.Copies.Sessions(ctx, cove.SessionFilter{}) {
		if err != nil {
			return err
		}
		if !slices.Contains(names[Session], rec.ID) {
			forgotten, providers = append(forgotten, rec), append(providers, rec.Provider)
		}
	}
	there, err := s.lookAround(ctx, providers)
	if err != nil {
		return err
	}
	for _, rec := range forgotten {
		if there.of(rec) != Nothing {
			continue
		}
		rec.State, rec.Cause, rec.EndedAt = cove.Ended, cove.ReasonNodeLost, time.Now()
		if err := s.Copies.PutSession(ctx, rec); err != nil {
			return err
		}
	}
	return nil
}

// Discard removes for good what Look finds, or of that only what has one of the ids,
// and returns what it removed. What cannot be removed is in the error.
func (s *Site) Discard(ctx context.Context, by string, only []cove.ID) (done []Item, failed error) {
	items, err := s.Look(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range only {
		if !slices.ContainsFunc(items, func(i Item) bool { return i.ID == id }) {
			return nil, cove.Errorf(cove.NotFound, "%.40q is not among what was found, so nothing is removed", string(id)).Remedy("cove recover lists it")
		}
	}
	rest := len(items)
	for _, item := range items {
		if len(only) > 0 && !slices.Contains(only, item.ID) {
			continue
		}
		if err := s.discard(ctx, by, item); err != nil {
			failed = errors.Join(failed, cove.Wrap(cove.CodeOf(err), err, "%s %s: %s", item.Kind, item.ID, cove.MessageOf(err)))
			continue
		}
		done = append(done, item)
		rest--
	}
	if failed != nil || rest > 0 {
		return done, failed
	}
	return done, s.Copies.settled()
}

func (s *Site) discard(ctx context.Context, by string, item Item) error {
	if err := s.note(ctx, discarded, by, item, ""); err != nil {
		return err
	}
	switch item.Kind {
	case Snapshot:
		if err := s.removeSnapshot(ctx, item); err != nil {
			return err
		}
		return s.Copies.DeleteSnapshot(ctx, item.ID)
	case Volume:
		if s.Folders != nil {
			if err := s.Folders.Remove(ctx, item.ID); err != nil {
				return err
			}
		}
		return s.Copies.DeleteVolume(ctx, item.ID)
	case Session:
	}
	for _, p := range s.Providers {
		if p.Name() != item.Provider {
			continue
		}
		if err := p.Remove(ctx, item.ID); err != nil {
			return err
		}
	}
	if err := s.Archives.Delete(ctx, item.ID); err != nil {
		return err
	}
	return s.Copies.DeleteSession(ctx, item.ID)
}

func (s *Site) removeSnapshot(ctx context.Context, item Item) error {
	for _, p := range s.Providers {
		if keeper, ok := cove.As[cove.SnapshotKeeper](p); ok && p.Name() == item.Provider {
			return keeper.RemoveSnapshot(ctx, item.ID)
		}
	}
	return nil
}

// note writes a line of the journal about an item, which is on the disk when it returns.
func (s *Site) note(ctx context.Context, kind, by string, item Item, why string) error {
	data, err := json.Marshal(struct {
		Kind   Kind   `json:"kind"`
		ID     string `json:"id"`
		Source Source `json:"source,omitempty"`
		Reason string `json:"reason,omitempty"`
	}{item.Kind, string(item.ID), item.Source, why})
	if err != nil {
		return err
	}
	e := &cove.Event{Kind: kind, Phase: cove.EngineNote, Principal: by, Tenant: item.Tenant, Provider: item.Provider, Data: data}
	if item.Kind == Session {
		e.Session = item.ID
	}
	return s.Journal.Append(ctx, e, true)
}
