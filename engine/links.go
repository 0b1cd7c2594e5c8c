package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cove-sandbox/cove"
)

// links is the part of the platform that lets others do one thing.
type links struct{ v view }

// Download implements [cove.Links].
func (l links) Download(ctx context.Context, req cove.FileLink) (*cove.Link, error) {
	return l.file(ctx, cove.LinkDownload, cove.GrantDownload, req)
}

// Upload implements [cove.Links].
func (l links) Upload(ctx context.Context, req cove.FileLink) (*cove.Link, error) {
	return l.file(ctx, cove.LinkUpload, cove.GrantUpload, req)
}

func (l links) file(ctx context.Context, verb cove.Verb, kind cove.GrantKind, req cove.FileLink) (*cove.Link, error) {
	a := on(verb, req.Session)
	a.Path, a.data = req.Path, l.v.e.contentOf(req.Path)
	return act(ctx, l.v, a, func(_ context.Context, st *step) (*cove.Link, error) {
		clean, err := cove.CleanPath(req.Path, st.lease.mounts()...)
		if err != nil {
			return nil, err
		}
		g := cove.Grant{Kind: kind, Session: req.Session, Path: clean}
		return l.sign(st, g, req.TTL, cove.DefaultFileTTL, cove.MaxLinkTTL)
	})
}

// Port implements [cove.Links]. Whether somebody listens is not looked at: a link
// may be made before the program that it shows.
func (l links) Port(ctx context.Context, req cove.PortLink) (*cove.Link, error) {
	return act(ctx, l.v, on(cove.LinkPort, req.Session), func(_ context.Context, st *step) (*cove.Link, error) {
		if err := cove.ValidPort(req.Port); err != nil {
			return nil, err
		}
		g := cove.Grant{Kind: cove.GrantPort, Session: req.Session, Port: req.Port}
		return l.sign(st, g, req.TTL, cove.DefaultPortTTL, cove.MaxLinkTTL)
	})
}

// Login implements [cove.Links].
func (l links) Login(ctx context.Context, ttl time.Duration) (*cove.Link, error) {
	return act(ctx, l.v, action{Action: cove.Action{Verb: cove.LinkLogin}}, func(_ context.Context, st *step) (*cove.Link, error) {
		return l.sign(st, cove.Grant{Kind: cove.GrantLogin}, ttl, cove.MaxLoginTTL, cove.MaxLoginTTL)
	})
}

// sign makes the link of a grant, and tells the journal what it is for; the URL
// itself is told to the caller alone.
func (l links) sign(st *step, g cove.Grant, ttl, usual, most time.Duration) (*cove.Link, error) {
	if err := cove.ValidLinkTTL(ttl, most); err != nil {
		return nil, err
	}
	if l.v.e.cfg.Sign == nil {
		return nil, cove.Errorf(cove.Unsupported, "links need a server that answers them, and none runs here").
			Remedy("run cove serve and ask it")
	}
	if ttl == 0 {
		ttl = usual
	}
	g.Principal, g.Tenant, g.ExpiresAt = l.v.p.Name, l.v.p.Tenant, time.Now().Add(ttl).UTC().Truncate(time.Second)
	url, err := l.v.e.cfg.Sign(g)
	if err != nil {
		return nil, err
	}
	st.outcome.Data, _ = json.Marshal(struct { // numbers and a time always are JSON
		Port    int       `json:"port,omitempty"`
		Expires time.Time `json:"expires_at"`
	}{g.Port, g.ExpiresAt})
	return &cove.Link{URL: url, ExpiresAt: g.ExpiresAt}, nil
}
