package cluster

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
)

// peers holds the connections to other nodes.
type peers struct {
	identity identity
	dialer   *net.Dialer

	mu    sync.Mutex
	nodes map[string]*peer // guarded by mu; by address and host
}

// peer is one node as this one calls it.
type peer struct {
	node   string
	client *client.Client
	whole  *http.Transport // for requests that are passed on as they are; their own, since they stay long
	lines  *lines          // all connections of both
}

// close waits for what is under way, but for what is passed on, which ends with its
// callers.
func (p *peer) close() {
	p.whole.CloseIdleConnections()
	_ = p.client.Close() // it only waits
}

func newPeers(id identity, lease time.Duration) *peers {
	return &peers{identity: id, dialer: dialer(lease), nodes: map[string]*peer{}}
}

// as returns the platform that a node has for p.
func (ps *peers) as(n cove.Node, p cove.Principal) (cove.Platform, error) {
	return ps.dial(n.ID, n.Address, hostOf(n.ID), p)
}

// dial returns the platform for p behind an address where a host answers.
func (ps *peers) dial(node, address, host string, p cove.Principal, more ...client.Option) (cove.Platform, error) {
	known, err := ps.get(node, address, host, more...)
	if err != nil {
		return nil, err
	}
	return known.client.As(p)
}

// get returns who answers at an address.
func (ps *peers) get(node, address, host string, more ...client.Option) (*peer, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	key := host + " " + address
	known := ps.nodes[key]
	if known == nil {
		w := &lines{open: map[*line]struct{}{}}
		connect := func(ctx context.Context) (net.Conn, error) { return w.connect(ctx, ps.dialer, address) }
		options := append([]client.Option{
			client.WithTLSConfig(ps.identity.caller(host)), client.WithAutoRetry(false), client.WithDialer(ps.dialer), client.WithConnect(connect),
		}, more...)
		c, err := client.New("https://"+address, "", options...)
		if err != nil {
			return nil, cove.Wrap(cove.Unavailable, err, "node %s cannot be called at the address that it gave", node)
		}
		known = &peer{node: node, client: c, lines: w, whole: &http.Transport{
			TLSClientConfig: ps.identity.caller(host), TLSHandshakeTimeout: ps.dialer.Timeout,
			DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return connect(ctx) },
			MaxIdleConnsPerHost: passIdle, IdleConnTimeout: passUnused, MaxResponseHeaderBytes: passHeaders, DisableCompression: true,
		}}
		ps.nodes[key] = known
	}
	return known, nil
}

// keep closes the connections to nodes that are not in a list any more, or have another
// address, when calls that are under way are over. Those of a node that is gone end at
// once: it may still hold them, and would never answer.
func (ps *peers) keep(list []cove.Node) {
	stay, dead := map[string]bool{}, map[string]bool{}
	for _, n := range list {
		if n.State != cove.NodeGone {
			stay[hostOf(n.ID)+" "+n.Address] = true
		}
		dead[n.ID] = n.State == cove.NodeGone
	}
	var gone []*peer
	ps.mu.Lock()
	for key, p := range ps.nodes {
		if p.node != "" && !stay[key] {
			gone = append(gone, p)
			delete(ps.nodes, key)
		}
	}
	ps.mu.Unlock()
	for _, p := range gone {
		if dead[p.node] {
			p.lines.sever()
		}
		go p.close()
	}
}

// close closes all connections.
func (ps *peers) close() {
	ps.mu.Lock()
	all := ps.nodes
	ps.nodes = map[string]*peer{}
	ps.mu.Unlock()
	for _, p := range all {
		p.close()
	}
}
