package cluster

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

// foreign is the platform that another cluster has for a caller whose key is one of
// this cluster. What keys are for is done here: the other one does not know them.
type foreign struct {
	cove.Platform

	region string
	v      view
}

func (f foreign) Links() cove.Links { return foreignLinks{f.v.own().Links(), f.region} }
func (f foreign) Admin() cove.Admin { return foreignAdmin{f.Platform.Admin(), f.v.Admin()} }

// notHere is the answer to what only who has a key of another cluster can do there.
func notHere(what, region string) error {
	return cove.Errorf(cove.Unsupported, "%s in region %s, which does not know the keys of this one", what, region).
		With("region", region).Remedy("ask the address of region %s itself, with a key of its own", region)
}

// foreignLinks makes no links to sessions of another cluster: they are redeemed where
// they were signed, as the key that they were made for.
type foreignLinks struct {
	cove.Links // of this cluster, for who signs in here

	region string
}

func (l foreignLinks) Download(context.Context, cove.FileLink) (*cove.Link, error) { return l.refuse() }

func (l foreignLinks) Upload(context.Context, cove.FileLink) (*cove.Link, error) { return l.refuse() }

func (l foreignLinks) Port(context.Context, cove.PortLink) (*cove.Link, error) { return l.refuse() }

func (l foreignLinks) refuse() (*cove.Link, error) {
	return nil, notHere("no link leads to a session", l.region)
}

// foreignAdmin makes keys for this cluster, and does all else in the other one.
type foreignAdmin struct {
	cove.Admin

	home cove.Admin
}

func (a foreignAdmin) CreateKey(ctx context.Context, req cove.KeyRequest) (*cove.Key, string, error) {
	return a.home.CreateKey(ctx, req)
}

func (a foreignAdmin) Keys(ctx context.Context) iter.Seq2[*cove.Key, error] { return a.home.Keys(ctx) }

func (a foreignAdmin) RevokeKey(ctx context.Context, id cove.ID) error {
	return a.home.RevokeKey(ctx, id)
}
