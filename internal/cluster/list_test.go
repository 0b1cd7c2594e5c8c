package cluster_test

import (
	"sync/atomic"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/archive"
)

func isListed(t *testing.T, at *node, id cove.ID) bool {
	t.Helper()
	count := 0
	for s, err := range at.member.As(somebody()).Sessions().List(t.Context(), cove.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if s.ID == id {
			count++
		}
	}
	if count > 1 {
		t.Errorf("%s lists %s %d times", at.name, id, count)
	}
	return count > 0
}

// A session that a node has taken up in the directory and not yet in its own table is
// listed.
func TestListBetweenDirectoryAndTable(t *testing.T) {
	id, at := nobodys(t)
	if !isListed(t, at, id) {
		t.Error("a session without a node is not listed")
	}
	if _, err := at.directory.Adopt(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if !isListed(t, at, id) {
		t.Error("a session that is being taken up is not listed")
	}
}

// A session that moves while nodes are asked is in every list, once.
func TestListWhileASessionMoves(t *testing.T) {
	shared, err := archive.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a, b := pair(t, func(n *node) { n.moving = shared })
	s := open(t, a.member.As(somebody()), cove.Spec{Workspace: cove.Workspace{Moves: true}, Wake: true, OnEnd: cove.EndStop})
	var over atomic.Bool
	missing := make(chan string, 1)
	go func() {
		defer close(missing)
		for !over.Load() {
			if !isListed(t, b, s.ID) {
				missing <- "a list through b lacks the session"
				return
			}
		}
	}()
	from, to := a, b
	if s.Node == "b" {
		from, to = b, a
	}
	for range 20 {
		cordon(t, from, to)
		awaitReleased(t, from, s.ID)
		if started, err := to.member.As(somebody()).Sessions().Start(t.Context(), s.ID); err != nil || started.Node != to.name {
			t.Fatalf("%+v %v", started, err)
		}
		if _, err := to.member.Uncordon(t.Context(), from.name); err != nil {
			t.Fatal(err)
		}
		from.must(from.member.BeatNow(t.Context()))
		from, to = to, from
	}
	over.Store(true)
	if said, ok := <-missing; ok {
		t.Error(said)
	}
}
