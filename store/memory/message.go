package memory

import (
	"context"
	"iter"
	"time"

	"github.com/cove-sandbox/cove"
)

// PutMessage implements cove.MessageStore. It inserts or replaces.
func (s *Store) PutMessage(ctx context.Context, m *cove.Message) error {
	kept, err := newRow(m, field{"id", string(m.ID)}, field{"tenant", m.Tenant}, field{"owner", m.Owner}, field{"thread_id", m.Thread})
	if err != nil {
		return err
	}
	return s.change(ctx, func() error {
		s.messages.put(kept)
		return nil
	})
}

// Messages implements cove.MessageStore.
func (s *Store) Messages(ctx context.Context, f cove.MessageFilter) iter.Seq2[*cove.Message, error] {
	return list(ctx, s, &s.messages, f.After, f.Limit, f.Match)
}

// DeleteMessages implements cove.MessageStore.
func (s *Store) DeleteMessages(ctx context.Context, tenant, owner, thread string) error {
	return s.change(ctx, func() error {
		s.messages.drop(func(m *cove.Message) bool { return m.Tenant == tenant && m.Owner == owner && m.Thread == thread })
		return nil
	})
}

// TrimMessages implements cove.MessageStore.
func (s *Store) TrimMessages(ctx context.Context, before time.Time) (n int64, err error) {
	err = s.change(ctx, func() error {
		n = s.messages.drop(func(m *cove.Message) bool { return m.CreatedAt.Before(before) })
		return nil
	})
	return n, err
}
