package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/placement"
)

// Open implements [cove.Sessions]. A live session of the user and thread is where it
// is; a new one comes to the better of two nodes. A node that has no room is no
// reason to give up while others may have some.
func (s sessions) Open(ctx context.Context, req cove.OpenRequest) (*cove.Session, error) {
	v := s.v
	if err := v.m.mayBegin(); err != nil {
		return nil, err
	}
	if v.here {
		return v.m.engine.Load().As(v.p).Sessions().Open(ctx, req)
	}
	if req.Spec.User == "" && req.Spec.Thread == "" { // the session of a user and thread is found by the same request
		v = v.changing(req.IdempotencyKey)
	}
	switch r := v.m.regions.ofMetadata(req.Spec.Metadata); {
	case r != nil && v.settled:
		return nil, notHere("a session with this metadata is opened", r.Name)
	case r != nil && !v.home:
		return v.openAbroad(ctx, r, req)
	}
	order, err := v.order(ctx, req)
	if err != nil {
		return nil, err
	}
	return v.tryEach(ctx, order, req)
}

// order returns the nodes to ask, first to last.
func (v view) order(ctx context.Context, req cove.OpenRequest) ([]string, error) {
	m := v.m
	if req.Spec.User != "" || req.Spec.Thread != "" {
		held, err := m.cfg.Directory.Holder(ctx, v.p.Tenant, req.Spec.User, req.Spec.Thread)
		if err == nil && held.Node != "" {
			return []string{held.Node}, nil
		}
		if err != nil && cove.CodeOf(err) != cove.NotFound {
			return nil, err
		}
	}
	nodes, err := placement.Order(m.members(), v.wants(req.Spec), rand.IntN)
	if err != nil {
		// The engine has the words for what no node can do, and asks policy first.
		m.cfg.Logger.DebugContext(ctx, "no node can take a session", slog.Any("error", err))
		return []string{m.cfg.Node}, nil
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.ID
	}
	return names, nil
}

// wants is what a session that the caller opens needs of a node.
func (v view) wants(s cove.Spec) placement.Want {
	w := wants(s, s.Resources.Memory)
	def := v.p.Defaults
	if w.Provider == "" {
		w.Provider = def.Provider
	}
	if w.Template == "" {
		w.Template = def.Template
	}
	if own := cove.TenantTemplate(v.p.Tenant, w.Template); slices.ContainsFunc(v.m.members(), func(n cove.Node) bool { return slices.Contains(n.Templates, own) }) {
		w.Template = own
	}
	if w.Isolation == "" {
		w.Isolation = def.Require.Isolation
	}
	return w
}

func wants(s cove.Spec, memory cove.Bytes) placement.Want {
	return placement.Want{Provider: s.Provider, Template: s.Template, Isolation: s.Require.Isolation, Memory: memory}
}

// tryEach asks one node after the other, until one has an answer that is not only its
// own. When none has room, who waits for it waits at the first that answered.
func (v view) tryEach(ctx context.Context, order []string, req cove.OpenRequest) (*cove.Session, error) {
	waits := req.OnFull == cove.WaitWhenFull
	if waits {
		req.OnFull = cove.RejectWhenFull
	}
	var full error
	first := ""
	for _, node := range order {
		s, at, err := v.openAt(ctx, node, req)
		switch {
		case err == nil:
			return v.placed(s, at), nil
		case notSent(err): // it may be gone, and was not asked
			err = away(at, err) // which need not be the node that was asked first
		case cove.CodeOf(err) != cove.Exhausted:
			return nil, err
		}
		if full == nil || cove.CodeOf(err) == cove.Exhausted {
			full = err
		}
		if first == "" && cove.CodeOf(err) == cove.Exhausted {
			first = node
		}
		if cove.CodeOf(err) == cove.Exhausted && cove.ReasonOf(err) != cove.ReasonCapacity {
			break // it would be the same at all nodes
		}
	}
	if !waits || first == "" {
		return nil, full
	}
	req.OnFull = cove.WaitWhenFull
	s, at, err := v.openAt(ctx, first, req)
	if err != nil {
		return nil, err
	}
	return v.placed(s, at), nil
}

// placed remembers where a session is that was opened.
func (v view) placed(s *cove.Session, at string) *cove.Session {
	if at != v.m.cfg.Node {
		v.m.known.put(s.ID, at)
	}
	return s
}

// openAt opens a session at a node, or where that says that it is.
func (v view) openAt(ctx context.Context, node string, req cove.OpenRequest) (_ *cove.Session, at string, err error) {
	at = node
	for range mostHops {
		var p cove.Platform
		if p, err = v.at(ctx, at); err != nil {
			if errors.Is(err, errNotKnown) {
				err = away(at, err)
			}
			return nil, at, err
		}
		var s *cove.Session
		s, err = p.Sessions().Open(ctx, req)
		next, ok := follows(err)
		switch {
		case !ok && at != v.m.cfg.Node && broke(err) && !notSent(err):
			return nil, at, v.unanswered(at, err)
		case !ok:
			return s, at, err
		case next != "":
			at = next
		}
	}
	return nil, at, moving(err)
}

// notSent reports whether a call surely did not reach the other node: there was no
// connection, or who answered was another one.
func notSent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	_, stranger := errors.AsType[*tls.CertificateVerificationError](err)
	late, timed := errors.AsType[net.Error](err)
	silent := timed && late.Timeout() && strings.Contains(late.Error(), "TLS handshake") // it has no type of its own
	return ok && op.Op == "dial" || stranger || silent || errors.Is(err, errNotKnown)
}
