package redis

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// How many lost sessions a store remembers, the newest, and for how long: by then
// a node that was cut off has long ended what it had.
const (
	maxGraves = 10_000
	graveTime = 24 * time.Hour
)

// graves are the sessions that this store has ended as lost. Whoever was told
// must not find them alive, because the directory lost that and their node put
// them back.
type graves struct {
	mu    sync.Mutex
	epoch string // in which all of them are ended in the directory
	list  []*cove.Session
}

// add remembers a session, without what can be long.
func (g *graves) add(rec *cove.Session) {
	kept := &cove.Session{
		ID: rec.ID, Tenant: rec.Tenant, Owner: rec.Owner, State: rec.State, Cause: rec.Cause, Provider: rec.Provider, Isolation: rec.Isolation,
		Node: rec.Node, Version: rec.Version, CreatedAt: rec.CreatedAt, LastActivity: rec.LastActivity, ExpiresAt: rec.ExpiresAt, EndedAt: rec.EndedAt,
		Spec: cove.Spec{Provider: rec.Spec.Provider, Template: rec.Spec.Template, Flavor: rec.Spec.Flavor, Project: rec.Spec.Project, User: rec.Spec.User, Thread: rec.Spec.Thread},
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.list) >= maxGraves {
		g.list = slices.Delete(g.list, 0, 1+len(g.list)-maxGraves)
	}
	g.list = append(g.list, kept)
}

// since returns what is to be ended again in an epoch.
func (g *graves) since(epoch string) []*cove.Session {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch g.epoch {
	case epoch:
		return nil
	case "":
		g.epoch = epoch
		return nil
	}
	g.list = slices.DeleteFunc(g.list, func(rec *cove.Session) bool { return time.Since(rec.EndedAt) > graveTime })
	return slices.Clone(g.list)
}

func (g *graves) settled(epoch string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.epoch = epoch
}

// buryAll ends again what was ended as lost in an earlier epoch. What fails is
// tried again at the next beat.
func (s *Store) buryAll(ctx context.Context, epoch string) {
	for _, rec := range s.graves.since(epoch) {
		if err := s.bury(ctx, rec); err != nil {
			s.log.WarnContext(ctx, "a lost session could not be ended again; the next beat tries again", slog.String("session_id", string(rec.ID)), slog.Any("error", err))
			return
		}
	}
	s.graves.settled(epoch)
}

func (s *Store) bury(ctx context.Context, lost *cove.Session) error {
	for range maxTries {
		rec, err := s.GetSession(ctx, lost.ID)
		was := int64(0)
		switch {
		case cove.CodeOf(err) == cove.NotFound:
			again := *lost
			again.Version++
			rec = &again
		case err != nil:
			return err
		case rec.State == cove.Ended:
			return nil
		default:
			was = rec.Version
			endLost(rec, lost.EndedAt)
		}
		a, err := s.write(ctx, modeBury, was, rec)
		if err != nil || a.is("ok", 0) {
			return err
		}
	}
	return cove.Errorf(cove.Conflict, "session %.40q changes faster than it can be ended; try again", string(lost.ID))
}
