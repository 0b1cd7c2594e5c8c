package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// Bounds on requests that are passed on.
const (
	passIdle    = 32               // connections that are kept for the next one
	passHeaders = 64 << 10         // of an answer
	passUnused  = 90 * time.Second // after which a connection is given up
)

// Mark is what stands for a node in what clients are given: it tells nodes apart, and
// no client their names.
func Mark(node string) string {
	sum := sha256.Sum256([]byte("mark " + node))
	return hex.EncodeToString(sum[:8])
}

// Answering is how many nodes answer callers now: those that are ready, and those that
// only take nothing new. It is at least one, since this one asks.
func (m *Member) Answering() int {
	n := 0
	for _, node := range m.members() {
		if node.State == cove.NodeReady || node.State == cove.NodeCordoned {
			n++
		}
	}
	return max(1, n)
}

// Pass returns what hands whole requests on to the door of the node with a mark,
// as they are, whoever sent them: that node has to find out itself. Nothing of them or
// of the answers is kept here. It is NotFound where no such node answers, or it is
// this one. refuse answers where the other node does not.
func (m *Member) Pass(ctx context.Context, mark string, refuse func(http.ResponseWriter, *http.Request, error)) (http.Handler, error) {
	n, ok := marked(m.members(), mark)
	if !ok { // it may have come since
		nodes, err := m.fresh.members(ctx, m.cfg.Directory)
		if err != nil {
			return nil, err
		}
		n, ok = marked(nodes, mark)
	}
	if !ok || n.ID == m.cfg.Node {
		return nil, cove.Errorf(cove.NotFound, "the node that had it is not there any more")
	}
	return m.proxy(n, refuse)
}

// marked finds the node with a mark among those that answer.
func marked(nodes []cove.Node, mark string) (cove.Node, bool) {
	for _, n := range nodes {
		if Mark(n.ID) == mark && (n.State == cove.NodeReady || n.State == cove.NodeCordoned) {
			return n, true
		}
	}
	return cove.Node{}, false
}

func (m *Member) proxy(n cove.Node, refuse func(http.ResponseWriter, *http.Request, error)) (http.Handler, error) {
	at, err := m.peers.get(n.ID, n.Address, hostOf(n.ID))
	if err != nil {
		return nil, err
	}
	to := &url.URL{Scheme: "https", Host: n.Address}
	return &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(to)
			p.Out.Host = p.In.Host // what an Origin is compared with
			p.Out.Header.Del(wire.PrincipalHeader)
		},
		Transport:     at.whole,
		FlushInterval: -1, // events are for now
		ErrorLog:      slog.NewLogLogger(m.cfg.Logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				refuse(w, r, cove.Wrap(cove.Canceled, context.Cause(r.Context()), "the request is over"))
				return
			}
			v := view{m: m, changes: r.Method != http.MethodGet && r.Method != http.MethodHead && !notSent(err)}
			refuse(w, r, v.unanswered(n.ID, err))
		},
	}, nil
}
