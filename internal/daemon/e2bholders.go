//go:build !lean

package daemon

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/e2bapi"
)

// maxSearched bounds the sessions that a signed link is looked for which names none.
const maxSearched = 100_000

// holders yields each session that a signed link may be for, with the callers that may
// have signed it: the session's owner first, then the other keys of its tenant to which
// an access token is given. "" means all sessions.
func (s *server) holders(ctx context.Context, id cove.ID) iter.Seq2[cove.ID, string] {
	return func(yield func(cove.ID, string) bool) {
		sessions, err := s.searched(ctx, id)
		if err != nil {
			s.Logger.WarnContext(ctx, "look up the sessions that a link may be for", slog.Any("error", err))
		}
		if len(sessions) == 0 {
			return // and no signature is good
		}
		for _, rec := range sessions {
			if !yield(rec.ID, rec.Owner) {
				return
			}
		}
		callers, err := s.tokenCallers(ctx)
		if err != nil {
			s.Logger.WarnContext(ctx, "look up the keys that may have signed a link", slog.Any("error", err))
			return
		}
		for _, rec := range sessions {
			for _, caller := range callers[rec.Tenant] {
				if caller != rec.Owner && !yield(rec.ID, caller) {
					return
				}
			}
		}
	}
}

// searched returns the session of an id, or all that live.
func (s *server) searched(ctx context.Context, id cove.ID) ([]*cove.Session, error) {
	if id != "" {
		rec, err := s.sessionOf(ctx, id)
		if cove.CodeOf(err) == cove.NotFound {
			return nil, nil
		}
		return []*cove.Session{rec}, err
	}
	var all []*cove.Session
	for rec, err := range s.parts.store.Sessions(ctx, cove.SessionFilter{Limit: maxSearched}) {
		if err != nil {
			return nil, err
		}
		all = append(all, &cove.Session{ID: rec.ID, Tenant: rec.Tenant, Owner: rec.Owner})
	}
	return all, nil
}

// tokenCallers returns the callers to which access tokens are given, by tenant. A link
// needs no key, so keys are listed for one request at a time.
func (s *server) tokenCallers(ctx context.Context) (map[string][]string, error) {
	select {
	case s.listing <- struct{}{}:
		defer func() { <-s.listing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	callers, now := map[string][]string{}, time.Now()
	for key, err := range s.parts.store.Keys(ctx) {
		if err != nil {
			return nil, err
		}
		expired := !key.ExpiresAt.IsZero() && !now.Before(key.ExpiresAt)
		p := cove.Principal{Scopes: key.Scopes}
		if key.RevokedAt.IsZero() && !expired && slices.ContainsFunc(e2bapi.AccessScopes(), p.May) {
			callers[key.Tenant] = append(callers[key.Tenant], string(key.ID))
		}
	}
	return callers, nil
}
