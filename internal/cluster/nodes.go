package cluster

import (
	"context"

	"github.com/cove-sandbox/cove"
)

var _ cove.Nodes = (*Member)(nil)

// List implements [cove.Nodes]. Of itself a node knows more than the directory does.
func (m *Member) List(ctx context.Context) ([]cove.Node, error) {
	list, err := m.cfg.Directory.Members(ctx)
	for i, n := range list {
		if n.ID == m.cfg.Node {
			list[i] = m.self(ctx)
			list[i].State, list[i].SeenAt = n.State, n.SeenAt
		}
	}
	return list, err
}

// Drain implements [cove.Nodes]. The node learns of it with its next beat.
func (m *Member) Drain(ctx context.Context, node string) (*cove.Node, error) {
	return m.cordon(ctx, node, true)
}

// Uncordon implements [cove.Nodes].
func (m *Member) Uncordon(ctx context.Context, node string) (*cove.Node, error) {
	return m.cordon(ctx, node, false)
}

func (m *Member) cordon(ctx context.Context, node string, on bool) (*cove.Node, error) {
	if err := m.cfg.Directory.Cordon(ctx, node, on); err != nil {
		return nil, err
	}
	if node == m.cfg.Node {
		m.beatSoon()
	}
	list, err := m.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range list {
		if n.ID == node {
			return &n, nil
		}
	}
	return nil, cove.Errorf(cove.NotFound, "there is no node %.80q", node).Remedy("cove node ls lists them")
}
