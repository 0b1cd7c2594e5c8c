package redis

import (
	"context"
	"time"

	"github.com/cove-sandbox/cove"
)

// remembered is how long a node is listed after it was last heard of.
const remembered = time.Hour

// needsNode refuses what a store without a node cannot do.
func (s *Store) needsNode() error {
	if s.node == "" {
		return cove.Errorf(cove.Unsupported, "this store was opened for no node, and has no lease")
	}
	return nil
}

// Beat implements cove.Directory. The first one in a new epoch also ends again
// what this store has ended as lost before.
func (s *Store) Beat(ctx context.Context, n cove.Node) (cove.Pulse, error) {
	if err := s.needsNode(); err != nil {
		return cove.Pulse{}, err
	}
	n.ID = s.node
	data, err := encode(n)
	if err != nil {
		return cove.Pulse{}, err
	}
	a, err := s.run(ctx, scripts.beat, s.instance, s.token.Load(), s.lease.Milliseconds(), data, string(cove.NewID()),
		flag(n.State == cove.NodeCordoned), (s.lease + remembered).Milliseconds())
	switch {
	case err != nil:
		return cove.Pulse{}, err
	case a.is("conflict", 0):
		return cove.Pulse{}, cove.Errorf(cove.Conflict, "another server is node %.80q, and its lease is good", s.node).
			Remedy("give each server a node name of its own, or end the other one; where it was removed, wait %d seconds", seconds(s.lease.Milliseconds()))
	case !a.is("ok", 5):
		return cove.Pulse{}, strange(a)
	}
	p := cove.Pulse{
		Token: number(a[1]), Epoch: a[2], Settling: time.Duration(number(a[3])) * time.Millisecond, Cordoned: a[4] != "", Origin: a[5],
	}
	s.token.Store(p.Token)
	s.buryAll(ctx, p.Epoch)
	return p, nil
}

// flag is a truth for a script, to which the empty text is none.
func flag(on bool) string {
	if on {
		return "1"
	}
	return ""
}

// Leave implements cove.Directory.
func (s *Store) Leave(ctx context.Context, grace time.Duration) error {
	if err := s.needsNode(); err != nil {
		return err
	}
	_, err := s.run(ctx, scripts.leave, grace.Milliseconds(), (grace + remembered).Milliseconds())
	return err
}

// Members implements cove.Directory.
func (s *Store) Members(ctx context.Context) ([]cove.Node, error) {
	a, err := s.run(ctx, scripts.members)
	if err != nil {
		return nil, err
	}
	if !a.is("ok", 0) || len(a)%3 != 1 {
		return nil, strange(a)
	}
	nodes := make([]cove.Node, 0, len(a)/3)
	for i := 1; i < len(a); i += 3 {
		n, err := decode[cove.Node](a[i])
		if err != nil {
			return nil, err
		}
		starting := n.State == cove.NodeAway // it lives, and does not answer yet
		n.SeenAt, n.State = time.UnixMilli(number(a[i+1])).UTC(), cove.NodeState(a[i+2])
		if starting && n.State != cove.NodeGone {
			n.State = cove.NodeAway
		}
		nodes = append(nodes, *n)
	}
	return nodes, nil
}

// Cordon implements cove.Directory.
func (s *Store) Cordon(ctx context.Context, node string, on bool) error {
	a, err := s.run(ctx, scripts.cordon, node, flag(on))
	if err == nil && !a.is("ok", 0) {
		return cove.Errorf(cove.NotFound, "there is no node %.80q", node).Remedy("see which there are with cove node ls")
	}
	return err
}

// SpendOnce implements cove.Directory.
func (s *Store) SpendOnce(ctx context.Context, name string, remember time.Duration) (bool, error) {
	a, err := s.run(ctx, scripts.spend, name, max(remember.Milliseconds(), 1))
	if err != nil {
		return false, err
	}
	if !a.is("ok", 1) {
		return false, strange(a)
	}
	return a[1] != "", nil
}

// Spent implements cove.Directory.
func (s *Store) Spent(ctx context.Context, name string) (bool, error) {
	a, err := s.run(ctx, scripts.spent, name)
	if err != nil {
		return false, err
	}
	if !a.is("ok", 1) {
		return false, strange(a)
	}
	return a[1] != "", nil
}
