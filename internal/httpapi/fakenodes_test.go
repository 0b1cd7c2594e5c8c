package httpapi_test

import (
	"context"

	"github.com/cove-sandbox/cove"
)

func (f *fake) Nodes() cove.Nodes { return fakeNodes{f} }

type fakeNodes struct{ *fake }

func (n fakeNodes) List(context.Context) ([]cove.Node, error) {
	list := []cove.Node{filled[cove.Node](), filled[cove.Node]()}
	list[1].ID = "another"
	if err := n.note(cove.NodeList, nil, list); err != nil {
		return nil, err
	}
	return list, nil
}

func (n fakeNodes) Drain(_ context.Context, node string) (*cove.Node, error) {
	return give[cove.Node](n.fake, cove.NodeDrain, args(node))
}

func (n fakeNodes) Uncordon(_ context.Context, node string) (*cove.Node, error) {
	return give[cove.Node](n.fake, cove.NodeUncordon, args(node))
}

// uncounted takes out of a node what it does not say of itself.
func uncounted(n *cove.Node) {
	n.Capacity.CPUSeconds, n.Capacity.Disk, n.Used.CPUSeconds, n.Used.Disk = 0, 0, 0, 0
}

func uncountedAll(result any) {
	switch v := result.(type) {
	case **cove.Node:
		n := **v
		uncounted(&n)
		*v = &n
	case *[]cove.Node:
		for i := range *v {
			uncounted(&(*v)[i])
		}
	}
}

func nodeTrips() map[cove.Verb]trip {
	return map[cove.Verb]trip{
		cove.NodeList: {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Nodes().List(ctx)) }, nil, uncountedAll},
		cove.NodeDrain: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return one(p.Nodes().Drain(ctx, "a/b ..&"))
		}, args("a/b ..&"), uncountedAll},
		cove.NodeUncordon: {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Nodes().Uncordon(ctx, "n-1.eu")) }, args("n-1.eu"), uncountedAll},
	}
}
