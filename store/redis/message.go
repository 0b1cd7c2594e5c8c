package redis

import (
	"context"
	"iter"
	"time"

	"github.com/cove-sandbox/cove"
)

// PutMessage implements cove.MessageStore. It inserts or replaces.
func (s *Store) PutMessage(ctx context.Context, m *cove.Message) error {
	if err := identify(text{"id", string(m.ID)}, text{"tenant", m.Tenant}, text{"owner", m.Owner}, text{"thread_id", m.Thread}); err != nil {
		return err
	}
	data, err := encode(m)
	if err != nil {
		return err
	}
	id := string(m.ID)
	_, err = s.put(ctx, record{kind: "message", id: id, data: data, sets: []string{
		"message:all", id, "message:in:" + compound(m.Tenant, m.Owner, m.Thread), id, "message:age", stamped(m.CreatedAt) + id,
	}})
	return err
}

// Messages implements cove.MessageStore.
func (s *Store) Messages(ctx context.Context, f cove.MessageFilter) iter.Seq2[*cove.Message, error] {
	q := selection[cove.Message]{kind: "message", set: "message:all", after: f.After, limit: f.Limit, match: f.Match}
	if f.Tenant != "" && f.Owner != "" && f.Thread != "" {
		q.set, q.match = "message:in:"+compound(f.Tenant, f.Owner, f.Thread), nil
	}
	return list(ctx, s, q)
}

// DeleteMessages implements cove.MessageStore.
func (s *Store) DeleteMessages(ctx context.Context, tenant, owner, thread string) error {
	_, err := s.drop(ctx, scripts.clearRecords, "message", "message:in:"+compound(tenant, owner, thread), 0, "", trimRows)
	return err
}

// TrimMessages implements cove.MessageStore.
func (s *Store) TrimMessages(ctx context.Context, before time.Time) (int64, error) {
	return s.drop(ctx, scripts.clearRecords, "message", "message:age", len(stamp), stamped(before), trimRows)
}
