package platformtest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func networkCalls() map[cove.Verb]call {
	return map[cove.Verb]call{
		cove.SessionSetNetwork: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Sessions().SetNetwork(ctx, at.session, cove.Network{Mode: cove.NetworkNone}))
		}},
		cove.SessionConnections: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return first(p.Sessions().Connections(ctx, at.session, 0))
		}},
	}
}

func networkCases() []testCase {
	return []testCase{
		{"none_stays_none", networkNone},
		{"bad_ones_change_nothing", networkBad},
		{"changes_while_it_lives", networkLive},
		{"mode_it_was_not_made_for", networkMode},
		{"connections", networkConnections},
		{"stays_after_stop_and_restart", networkStays},
		{"reopening_compares_with_the_new_one", networkReopen},
	}
}

// worldRig is a platform whose sessions can reach something.
func (s *suite) worldRig(t *testing.T) (*rig, cove.Platform, *World) {
	t.Helper()
	r := s.start(t, Options{})
	r.needs(cove.PowerEgress)
	w := r.h.Extras().World
	if w == nil {
		t.Skip("there is nothing outside to reach here")
	}
	return r, r.user("acme"), w
}

func allowing(hosts ...string) cove.Network {
	return cove.Network{Mode: cove.NetworkAllow, Allow: hosts}
}

// fetches says whether a session reaches a host.
func (r *rig) fetches(p cove.Platform, id cove.ID, w *World, host string) bool {
	r.t.Helper()
	x := r.exec(p, id, cove.ExecRequest{Line: w.Fetch(host)})
	ok := x.ExitCode == 0
	if ok != (string(x.Stdout.Data) == w.Text) {
		r.t.Errorf("%s answers %q with code %d", host, x.Stdout.Data, x.ExitCode)
	}
	return ok
}

func (r *rig) setNetwork(p cove.Platform, id cove.ID, n cove.Network) *cove.Session {
	r.t.Helper()
	s, err := p.Sessions().SetNetwork(r.ctx, id, n)
	r.must(err, "set the network")
	same(r.t, "the network in the answer", s.Spec.Network, n)
	same(r.t, "the network in the record", r.get(p, id).Spec.Network, n)
	return s
}

func networkNone(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	caps := r.capabilities()
	if !slices.Contains(caps.Networks, cove.NetworkNone) {
		t.Skip("the provider has no network mode none")
	}
	if caps.Isolation.Network != cove.Hard {
		id := r.session(p, cove.Spec{}).ID
		_, err := p.Sessions().SetNetwork(r.ctx, id, cove.Network{Mode: cove.NetworkNone})
		wantReason(t, err, cove.Unsupported, cove.ReasonLimitNotEnforced)
		same(t, "the connections", len(all(r, p.Sessions().Connections(r.ctx, id, 0))), 0)
		return
	}
	id := r.session(p, cove.Spec{Network: cove.Network{Mode: cove.NetworkNone}}).ID
	r.setNetwork(p, id, cove.Network{Mode: cove.NetworkNone})
	same(t, "the connections", len(all(r, p.Sessions().Connections(r.ctx, id, 0))), 0)
}

func networkBad(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	made := r.session(p, cove.Spec{})
	for field, n := range map[string]cove.Network{
		"network.mode":    {},
		"network.allow":   allowing("http://bad/"),
		"network.secrets": {Mode: cove.NetworkOpen, Secrets: []string{"no name"}},
	} {
		_, err := p.Sessions().SetNetwork(r.ctx, made.ID, n)
		wantField(t, err, cove.Invalid, field)
	}
	var hosts []string
	for range 300 {
		hosts = append(hosts, "a.com")
	}
	_, err := p.Sessions().SetNetwork(r.ctx, made.ID, allowing(hosts...))
	wantField(t, err, cove.Invalid, "network.allow")
	same(t, "the network", r.get(p, made.ID).Spec.Network, made.Spec.Network)
	_, err = collect(p.Sessions().Connections(r.ctx, made.ID, -1))
	wantCode(t, err, cove.Invalid)
}

func networkLive(t *testing.T, s *suite) {
	r, p, w := s.worldRig(t)
	id := r.session(p, cove.Spec{Network: allowing(w.Host)}).ID
	if !r.fetches(p, id, w, w.Host) || r.fetches(p, id, w, w.Other) {
		t.Errorf("a list of %s reaches something else", w.Host)
	}
	r.setNetwork(p, id, allowing(w.Other))
	if r.fetches(p, id, w, w.Host) || !r.fetches(p, id, w, w.Other) {
		t.Errorf("a list of %s reaches something else", w.Other)
	}
	r.setNetwork(p, id, cove.Network{Mode: cove.NetworkNone})
	if r.fetches(p, id, w, w.Host) || r.fetches(p, id, w, w.Other) {
		t.Error("a session without a network reaches something")
	}
}

// networkMode: a sandbox that was made without a way out gets none, but its
// session can be given one while it is stopped.
func networkMode(t *testing.T, s *suite) {
	r, p, w := s.worldRig(t)
	none := cove.Network{Mode: cove.NetworkNone}
	id := r.session(p, cove.Spec{Network: none}).ID
	_, err := p.Sessions().SetNetwork(r.ctx, id, allowing(w.Host))
	if err == nil {
		t.Skip("the provider can give a live sandbox a way out")
	}
	wantCode(t, err, cove.Unsupported)
	wantRemedy(t, err)
	same(t, "the network after a refusal", r.get(p, id).Spec.Network, none)
	r.stop(p, id)
	r.setNetwork(p, id, allowing(w.Host))
	_, err = collect(p.Sessions().Connections(r.ctx, id, 0))
	wantReason(t, err, cove.Conflict, cove.ReasonSessionStopped)
	_, err = p.Sessions().Start(r.ctx, id)
	r.must(err, "start")
	if !r.fetches(p, id, w, w.Host) {
		t.Errorf("%s is not reached", w.Host)
	}
}

func networkConnections(t *testing.T, s *suite) {
	r, p, w := s.worldRig(t)
	id := r.session(p, cove.Spec{Network: allowing(w.Host)}).ID
	r.fetches(p, id, w, w.Host)
	r.fetches(p, id, w, w.Other)
	r.fetches(p, id, w, w.Host)
	list := slices.DeleteFunc(all(r, p.Sessions().Connections(r.ctx, id, 0)), func(c cove.Connection) bool { return c.Protocol != "tcp" })
	var told []string
	for i, c := range list {
		word := c.Host
		if !c.Allowed {
			word += " refused"
		}
		told = append(told, word)
		if c.At.IsZero() || c.Port == 0 || c.Allowed == (c.Why != "") || c.Allowed && (c.Sent == 0 || c.Received == 0) || i > 0 && c.Number <= list[i-1].Number {
			t.Errorf("a connection is told as %+v", c)
		}
	}
	same(t, "the log", told, []string{w.Host, w.Other + " refused", w.Host})
	same(t, "what comes after the first", len(all(r, p.Sessions().Connections(r.ctx, id, list[0].Number))), 2)
	same(t, "what comes after the last", len(all(r, p.Sessions().Connections(r.ctx, id, list[2].Number))), 0)
	// More than one page of a client.
	r.sh(p, id, "for i in $(seq 1 600); do "+w.Fetch(w.Host)+" > /dev/null; done")
	same(t, "a long log", len(all(r, p.Sessions().Connections(r.ctx, id, list[2].Number))), 600)
}

func networkStays(t *testing.T, s *suite) {
	r, p, w := s.worldRig(t)
	id := r.session(p, cove.Spec{Network: allowing(w.Host)}).ID
	r.setNetwork(p, id, allowing(w.Other))
	r.stop(p, id)
	_, err := p.Sessions().Start(r.ctx, id)
	r.must(err, "start")
	if r.fetches(p, id, w, w.Host) || !r.fetches(p, id, w, w.Other) {
		t.Error("after a stop the old list holds")
	}
	r.setNetwork(p, id, allowing(w.Host))
	r.needs(cove.PowerAttach)
	r.restart()
	p = r.user("acme")
	same(t, "the network in the record", r.get(p, id).Spec.Network, allowing(w.Host))
	if !r.fetches(p, id, w, w.Host) || r.fetches(p, id, w, w.Other) {
		t.Error("after a restart the old list holds")
	}
}

func networkReopen(t *testing.T, s *suite) {
	r, p, w := s.worldRig(t)
	spec := cove.Spec{User: "u", Network: allowing(w.Host)}
	id := r.session(p, spec).ID
	r.setNetwork(p, id, allowing(w.Host, w.Other))
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: spec})
	wantReason(t, err, cove.Conflict, cove.ReasonSpecDiffers)
	if !strings.Contains(cove.MessageOf(err), "network.allow") {
		t.Errorf("the field that differs is told as %q", cove.MessageOf(err))
	}
	spec.Network = allowing(w.Host, w.Other)
	same(t, "the session", r.session(p, spec).ID, id)
}
