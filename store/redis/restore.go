package redis

import (
	"context"

	"github.com/cove-sandbox/cove"
)

// Adopt implements cove.Directory.
func (s *Store) Adopt(ctx context.Context, id cove.ID) (*cove.Session, error) {
	if err := s.needsNode(); err != nil {
		return nil, err
	}
	rec, err := s.Locate(ctx, id)
	if err != nil {
		return nil, err
	}
	switch {
	case rec.State == cove.Ended:
		return nil, goneSession(rec.Cause)
	case rec.Node != "":
		return nil, s.elsewhere(id, rec.Node)
	}
	rec.Node = s.node
	if err := s.PutSession(ctx, rec); err != nil {
		return nil, err
	}
	return rec, nil
}

func goneSession(cause string) error {
	return cove.Errorf(cove.NotFound, "the session was ended or moved meanwhile").Reason(cause)
}

// Restore implements cove.Directory.
func (s *Store) Restore(ctx context.Context, rec *cove.Session) error {
	if err := s.needsNode(); err != nil {
		return err
	}
	if rec.Node != s.node {
		return s.elsewhere(rec.ID, rec.Node)
	}
	for range maxTries {
		was, cause := int64(0), cove.ReasonNodeLost
		old, err := s.GetSession(ctx, rec.ID)
		switch {
		case err == nil:
			was = old.Version
			if old.Cause != "" {
				cause = old.Cause
			}
		case cove.CodeOf(err) != cove.NotFound:
			return err
		}
		next := *rec
		next.Version = max(rec.Version, was) + 1
		a, err := s.claim(ctx, modeRestore, was, &next)
		switch {
		case err != nil:
			return err
		case a.is("gone", 0):
			return goneSession(cause)
		case a.is("version", 0):
			continue
		}
		if err := s.refusal(a, rec); err != nil {
			return err
		}
		rec.Version = next.Version
		return nil
	}
	return cove.Errorf(cove.Conflict, "session %.40q changes faster than it can be put back; try again", string(rec.ID))
}
