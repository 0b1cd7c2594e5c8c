package cluster_test

import (
	"slices"
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

// A list that reads the directory has the names of variables and not their values.
func TestListFromTheDirectoryHasNoValues(t *testing.T) {
	a, b := pair(t, func(*node) {})
	s := open(t, a.member.As(somebody()), cove.Spec{Env: map[string]string{"API_KEY": "secret"}})
	from := a
	if s.Node == "a" {
		from = b
	}
	recorded, err := from.member.Recorded(t.Context(), somebody(), cove.SessionFilter{})
	if err != nil || len(recorded) != 1 {
		t.Fatalf("%d sessions, %v", len(recorded), err)
	}
	if spec := recorded[0].Spec; len(spec.Env) > 0 || !slices.Equal(spec.EnvNames, []string{"API_KEY"}) {
		t.Errorf("the list has the values %q and the names %q", spec.Env, spec.EnvNames)
	}
}
