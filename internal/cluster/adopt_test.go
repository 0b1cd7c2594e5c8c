package cluster_test

import (
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/archive"
)

// nobodys makes a session with a file that is nobody's, and a node other than its last
// that can take it.
func nobodys(t *testing.T) (cove.ID, *node) {
	t.Helper()
	shared, err := archive.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return nobodysAt(t, shared)
}

// nobodysAt is nobodys with its files in a place.
func nobodysAt(t *testing.T, shared cove.Archives) (cove.ID, *node) {
	t.Helper()
	a, b := pair(t, func(n *node) { n.moving = shared })
	s := open(t, a.member.As(somebody()), cove.Spec{Workspace: cove.Workspace{Moves: true}, Wake: true, OnEnd: cove.EndStop})
	say(t, a.member.As(somebody()), s.ID, "echo here > file")
	from, to := a, b
	if s.Node == "b" {
		from, to = b, a
	}
	cordon(t, from, to)
	awaitReleased(t, from, s.ID)
	return s.ID, to
}

// awaitReleased waits until a node that is drained has given a session up.
func awaitReleased(t *testing.T, from *node, id cove.ID) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); from.engine.Holds(id); <-time.After(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the session is not released")
		}
	}
}

// Many who use a session that is nobody's at the same time find it.
func TestAdoptedOnce(t *testing.T) {
	id, at := nobodys(t)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if s, err := at.member.As(somebody()).Sessions().Start(t.Context(), id); err != nil || s.Node != at.name {
				t.Errorf("%+v %v", s, err)
			}
		})
	}
	all.Wait()
	if got := say(t, at.member.As(somebody()), id, "cat file"); got != "here\n" {
		t.Errorf("it has %q", got)
	}
}

// A node that took a session up and did not hear the answer has it all the same: when
// somebody asks for it, and when it compares its sessions with the directory.
func TestAdoptedWithoutAnAnswer(t *testing.T) {
	for name, then := range map[string]func(t *testing.T, at *node){
		"asked": func(*testing.T, *node) {},
		"compared": func(t *testing.T, at *node) {
			if lost, err := at.engine.Reconcile(t.Context()); err != nil || lost != 0 {
				t.Errorf("%d lost, %v", lost, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			id, at := nobodys(t)
			if _, err := at.directory.Adopt(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			then(t, at)
			if got := say(t, at.member.As(somebody()), id, "cat file"); got != "here\n" {
				t.Errorf("it has %q", got)
			}
		})
	}
}
