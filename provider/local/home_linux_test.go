package local_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// homeLinks are where the other name of the workspace leads in a root.
func homeLinks(r fence.Root) (to []string) {
	for _, l := range r.Links {
		if l.Path == cove.HomePath {
			to = append(to, l.To)
		}
	}
	return to
}

func TestHomeIsTheWorkspaceInEveryRoot(t *testing.T) {
	want := []string{cove.WorkspacePath}
	if got := homeLinks(local.NewRoot("/no/such/host", "/stage")); !cmp.Equal(want, got) {
		t.Errorf("in the root of a host it leads to %v", got)
	}
	top := tree(t, map[string]string{"usr/bin/x": "x", "home/user/x": "x", "home/node/x": "x"})
	r, err := local.TreeRoot(top)
	must(t, err)
	if got := homeLinks(r); !cmp.Equal(want, got) {
		t.Errorf("in the root of a tree it leads to %v", got)
	}
	if !slices.ContainsFunc(r.Binds, func(b fence.Bind) bool { return b.Path == "/home" && b.Keep }) {
		t.Errorf("what is ours in /home is hidden: %+v", r.Binds)
	}
	r, err = local.LayerRoot("/no/such/host", top)
	must(t, err)
	if got := homeLinks(r); !cmp.Equal(want, got) {
		t.Errorf("below a layer it leads to %v", got)
	}
	if got := shownAt(r, top); !slices.ContainsFunc(got, func(b fence.Bind) bool { return b.Source == "A/home/node" }) {
		t.Errorf("another home of the layer is not shown: %+v", got)
	}
}

// TestSomebodyIsCalledUser: an interpreter in the home of somebody of that name is
// worth more than the link.
func TestSomebodyIsCalledUser(t *testing.T) {
	r := local.NewRoot("/no/such/host", "/stage")
	local.AddParents(&r, cove.HomePath+"/tools/python")
	if got := homeLinks(r); len(got) > 0 {
		t.Errorf("the link to %v stands where a directory must be", got)
	}
}
