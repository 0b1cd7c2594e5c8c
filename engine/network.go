package engine

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/cove-sandbox/cove"
)

// SetNetwork implements [cove.Sessions]. The record says so before the sandbox
// does, and recovery puts it into the sandbox again: a crash in between leaves
// no session with a way out that its record does not show.
func (p sessions) SetNetwork(ctx context.Context, id cove.ID, n cove.Network) (*cove.Session, error) {
	asked := cove.Spec{Network: n}.Clone()
	a := on(cove.SessionSetNetwork, id)
	a.Spec = &asked
	a.data = p.v.e.networkOf(asked.Network)
	return p.move(ctx, a, func(ctx context.Context, l *lease, s *cove.Session) error {
		return p.v.e.setNetwork(ctx, l, s, asked)
	})
}

// setNetwork changes what a lease may reach. The caller holds the turn.
func (e *Engine) setNetwork(ctx context.Context, l *lease, s *cove.Session, asked cove.Spec) error {
	if asked.Network.Mode == "" {
		return cove.InvalidField("network.mode", "is missing; use none, allow or open")
	}
	if err := asked.Network.Validate(); err != nil {
		return err
	}
	if s.State != cove.Paused && s.State != cove.Stopped {
		if err := usable(s); err != nil {
			return err
		}
	}
	want := s.Spec.Clone()
	want.Network = asked.Network
	want.Floors = slices.DeleteFunc(want.Floors, func(f cove.Limit) bool { return f == cove.LimitNetwork })
	want.Floors = append(want.Floors, asked.Asked()...)
	if err := e.canServe(ctx, s.Provider, want); err != nil {
		return err
	}
	if err := e.recordNetwork(ctx, l, want); err != nil {
		return err
	}
	sandbox := l.box()
	if sandbox == nil {
		return nil
	}
	if err := steer(ctx, sandbox, s.Spec.Network, want.Network); err != nil {
		if undo := e.recordNetwork(context.WithoutCancel(ctx), l, s.Spec); undo != nil {
			e.cfg.Logger.ErrorContext(ctx, "record the network that a session still has", errAttr(undo), sessionAttr(l.id))
		}
		return err
	}
	return nil
}

// canServe reports what a provider cannot enforce of a spec.
func (e *Engine) canServe(ctx context.Context, provider string, spec cove.Spec) error {
	p, ok := e.probes.provider(provider)
	if !ok {
		return cove.Errorf(cove.Unavailable, "provider %s is not part of this server any more", provider)
	}
	caps, err := e.probes.of(ctx, p)
	if err != nil {
		return err
	}
	return caps.Check(provider, spec)
}

func (e *Engine) recordNetwork(ctx context.Context, l *lease, spec cove.Spec) error {
	spec = spec.Clone()
	var was cove.Spec
	l.change(func(s *cove.Session) {
		was = s.Spec
		s.Spec.Network, s.Spec.Floors = spec.Network, spec.Floors
	})
	err := e.save(ctx, l)
	if err != nil {
		l.change(func(s *cove.Session) { s.Spec.Network, s.Spec.Floors = was.Network, was.Floors })
	}
	return err
}

// steer makes a live sandbox reach what n allows and nothing else.
func steer(ctx context.Context, sandbox cove.Sandbox, was, n cove.Network) error {
	if egress, ok := cove.As[cove.Egress](sandbox); ok {
		return egress.SetNetwork(ctx, n)
	}
	if was.Mode == cove.NetworkNone && n.Mode == cove.NetworkNone {
		return nil
	}
	return cove.Errorf(cove.Unsupported, "the live sandbox was made with network %s, which cannot become %s", was.Mode, n.Mode).
		With("field", "network.mode").Remedy("stop the session, change its network and start it again")
}

// steerBack gives a sandbox from an earlier life the network that its record
// has, in case the server went down between the two.
func steerBack(ctx context.Context, sandbox cove.Sandbox, n cove.Network) error {
	egress, ok := cove.As[cove.Egress](sandbox)
	if !ok || n.Mode == cove.NetworkNone {
		return nil
	}
	return egress.SetNetwork(ctx, n)
}

// Connections implements [cove.Sessions].
func (p sessions) Connections(ctx context.Context, id cove.ID, after int64) iter.Seq2[cove.Connection, error] {
	return actSeq(ctx, p.v, on(cove.SessionConnections, id), func(ctx context.Context, st *step) (iter.Seq2[cove.Connection, error], error) {
		if after < 0 {
			return nil, cove.InvalidField("after", "%d is negative", after)
		}
		s := st.lease.view()
		if s.State != cove.Paused {
			if err := usable(s); err != nil {
				return nil, err
			}
		}
		egress, ok := cove.As[cove.Egress](st.lease.box())
		switch {
		case ok:
			return egress.Connections(ctx, after), nil
		case s.Spec.Network.Mode == cove.NetworkNone:
			return each[cove.Connection](nil), nil // there is no way out to log
		}
		return nil, lacks(st.lease, cove.PowerEgress)
	})
}

// networkOf is what the journal keeps of a network: its mode, how many names it
// has, and the hash of the whole.
func (e *Engine) networkOf(n cove.Network) json.RawMessage {
	text, err := json.Marshal(n)
	if err != nil {
		return nil // a Network has only plain values
	}
	data, err := json.Marshal(struct {
		Digest  string `json:"digest"`
		Mode    string `json:"mode"`
		Allow   int    `json:"allow"`
		Secrets int    `json:"secrets"`
	}{e.cfg.Journal.Digest(text), short(string(n.Mode)), len(n.Allow), len(n.Secrets)})
	if err != nil {
		return nil // nor has this
	}
	return data
}
