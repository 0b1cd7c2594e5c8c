package mcpserver

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
)

// peer is one MCP session and the sandboxes that were made for it.
type peer struct {
	caller

	ctx   context.Context //nolint:containedctx // of all its calls, for as long as the MCP session
	end   context.CancelFunc
	calls atomic.Int64 // under way

	thread cove.ID       // by which the platform knows its sandboxes
	turn   chan struct{} // held by who looks at or changes what is below
	own    map[string]cove.ID
	now    string // the template of the one that is used where nobody says otherwise

	mu   sync.Mutex
	here int         // requests over HTTP that are not over; guarded by mu
	away *time.Timer // ends calls that nobody waits for; guarded by mu
}

// arrive is told that the client is there; the answer, that a request of it is over.
// A client that stays away for idle waits for nothing any more: the SDK, which ends
// its MCP session then, would wait for its calls.
func (p *peer) arrive(idle time.Duration) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.here++
	if p.away != nil {
		p.away.Stop()
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.here--; p.here == 0 && p.ctx.Err() == nil {
			p.away = time.AfterFunc(idle, p.end)
		}
	}
}

// leave lets nobody wait for the client.
func (p *peer) leave() {
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away != nil {
		p.away.Stop()
	}
}

// meet returns the peer of an MCP session. Who may have no more is Exhausted.
func (f *face) meet(session *mcp.ServerSession, who caller) (*peer, error) {
	if who.platform == nil {
		return nil, cove.Errorf(cove.Unauthenticated, "the request names nobody")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.peers[session]; p != nil {
		return p, nil
	}
	same := 0
	for _, p := range f.peers {
		if p.user() == who.user() {
			same++
		}
	}
	switch {
	case f.leaving:
		return nil, cove.Errorf(cove.Unavailable, "the server ends").Remedy("connect again in a moment")
	case len(f.peers) >= maxPeers || same >= maxPeersEach:
		return nil, cove.Errorf(cove.Exhausted, "there are too many MCP sessions").Remedy("end some of them, or use one for more than one task")
	}
	p := &peer{caller: who, thread: cove.NewID(), turn: make(chan struct{}, 1), own: map[string]cove.ID{}, now: f.Template}
	p.ctx, p.end = context.WithCancel(context.Background())
	f.peers[session], f.named[session.ID()] = p, p
	f.wait.Go(func() {
		_ = session.Wait() // how it ended is of no interest
		f.part(session, p)
	})
	return p, nil
}

// part lets go of a peer whose MCP session is over. What was made for it is
// stopped: its files stay until its idle time is over.
func (f *face) part(session *mcp.ServerSession, p *peer) {
	p.leave()
	f.mu.Lock()
	delete(f.peers, session)
	delete(f.named, session.ID())
	leaving := f.leaving
	f.mu.Unlock()
	if leaving {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), tidyTime)
	defer cancel()
	if p.take(ctx) != nil {
		return
	}
	defer p.give()
	for _, id := range p.own {
		if _, err := p.platform.Sessions().Stop(ctx, id); err != nil && cove.CodeOf(err) != cove.NotFound {
			f.Logger.LogAttrs(ctx, slog.LevelWarn, "a session of an mcp client was not stopped", slog.String("session", string(id)), slog.Any("error", err))
		}
	}
}

// peerOf is the caller's own peer with an MCP session id, or nil.
func (f *face) peerOf(id string, who caller) *peer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.named[id]; p != nil && p.user() == who.user() {
		return p
	}
	return nil
}

// all are the peers of now, by their sessions.
func (f *face) all() map[*mcp.ServerSession]*peer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.peers)
}

func (p *peer) take(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *peer) give() { <-p.turn }

// sandbox returns the peer's own sandbox with a template, "" meaning the one that
// it used last, and makes it where there is none.
func (p *peer) sandbox(ctx context.Context, template string) (id cove.ID, made bool, err error) {
	if err := p.take(ctx); err != nil {
		return "", false, err
	}
	defer p.give()
	if template == "" {
		template = p.now
	}
	if id, ok := p.own[template]; ok {
		p.now = template
		return id, false, nil
	}
	if len(p.own) >= maxOwn {
		return "", false, cove.Errorf(cove.Exhausted, "this MCP session has %d sandboxes, which is the most", maxOwn).Remedy("use one of their templates, or name a session")
	}
	s, err := p.platform.Sessions().Open(ctx, cove.OpenRequest{Spec: cove.Spec{
		User: "mcp", Thread: string(p.thread) + "/" + template, Template: template, OnEnd: cove.EndClose,
	}})
	if err != nil {
		return "", false, err
	}
	p.own[template], p.now = s.ID, template
	return s.ID, s.Created, nil
}

// forget lets the next call make or start a sandbox again.
func (p *peer) forget(ctx context.Context, id cove.ID) {
	if p.take(ctx) != nil {
		return
	}
	defer p.give()
	for template, own := range p.own {
		if own == id {
			delete(p.own, template)
		}
	}
}

// current is the sandbox that is used where nobody says otherwise, if there is one.
func (p *peer) current(ctx context.Context) (cove.ID, error) {
	if err := p.take(ctx); err != nil {
		return "", err
	}
	defer p.give()
	return p.own[p.now], nil
}
