package sqlite

import (
	"context"
	"iter"
	"time"

	"github.com/cove-sandbox/cove"
)

const (
	putMessage = `INSERT INTO message (id, tenant, owner, thread, created_at, data) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET tenant = excluded.tenant, owner = excluded.owner, thread = excluded.thread,
			created_at = excluded.created_at, data = excluded.data`
	deleteThread = `DELETE FROM message WHERE tenant = ? AND owner = ? AND thread = ?`
	trimMessages = `DELETE FROM message WHERE created_at < ?`
)

// PutMessage implements cove.MessageStore. It inserts or replaces.
func (s *Store) PutMessage(ctx context.Context, m *cove.Message) error {
	if err := identify(field{"id", string(m.ID)}, field{"tenant", m.Tenant}, field{"owner", m.Owner}, field{"thread_id", m.Thread}); err != nil {
		return err
	}
	data, err := encode(m)
	if err != nil {
		return err
	}
	return s.write(ctx, putMessage, string(m.ID), m.Tenant, m.Owner, m.Thread, m.CreatedAt.UTC().Format(stamp), data)
}

// Messages implements cove.MessageStore.
func (s *Store) Messages(ctx context.Context, f cove.MessageFilter) iter.Seq2[*cove.Message, error] {
	q := selection{table: "message", after: f.After, limit: f.Limit}
	q.where("tenant = ?", f.Tenant)
	q.where("owner = ?", f.Owner)
	q.where("thread = ?", f.Thread)
	return list[cove.Message](ctx, s, q, nil)
}

// DeleteMessages implements cove.MessageStore.
func (s *Store) DeleteMessages(ctx context.Context, tenant, owner, thread string) error {
	return s.write(ctx, deleteThread, tenant, owner, thread)
}

// TrimMessages implements cove.MessageStore.
func (s *Store) TrimMessages(ctx context.Context, before time.Time) (int64, error) {
	n, err := s.writer.exec(ctx, trimMessages, before.UTC().Format(stamp))
	if err != nil {
		return 0, fault(s.path, err)
	}
	return n, nil
}
