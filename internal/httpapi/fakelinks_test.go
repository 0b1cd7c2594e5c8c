package httpapi_test

import (
	"context"
	"time"

	"github.com/cove-sandbox/cove"
)

func (f *fake) Links() cove.Links { return fakeLinks{f} }

type fakeLinks struct{ *fake }

func (l fakeLinks) Download(_ context.Context, req cove.FileLink) (*cove.Link, error) {
	return give[cove.Link](l.fake, cove.LinkDownload, args(req))
}

func (l fakeLinks) Upload(_ context.Context, req cove.FileLink) (*cove.Link, error) {
	return give[cove.Link](l.fake, cove.LinkUpload, args(req))
}

func (l fakeLinks) Port(_ context.Context, req cove.PortLink) (*cove.Link, error) {
	return give[cove.Link](l.fake, cove.LinkPort, args(req))
}

func (l fakeLinks) Login(_ context.Context, ttl time.Duration) (*cove.Link, error) {
	return give[cove.Link](l.fake, cove.LinkLogin, args(ttl))
}

func linkTrips() map[cove.Verb]trip {
	file := cove.FileLink{Session: id, Path: "a\xff&b", TTL: 90 * time.Second}
	plain := cove.FileLink{Session: id, Path: "a b"}
	port := cove.PortLink{Session: id, Port: 8080, TTL: 1500 * time.Millisecond}
	return map[cove.Verb]trip{
		cove.LinkDownload: {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Links().Download(ctx, file)) }, args(file), nil},
		cove.LinkUpload:   {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Links().Upload(ctx, plain)) }, args(plain), nil},
		cove.LinkPort:     {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Links().Port(ctx, port)) }, args(port), nil},
		cove.LinkLogin:    {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Links().Login(ctx, time.Minute)) }, args(time.Minute), nil},
	}
}
