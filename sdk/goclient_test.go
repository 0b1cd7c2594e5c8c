package sdk_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/wire"
)

const (
	playTime   = 2 * time.Minute // for one scenario
	expireTime = time.Minute     // until a session that has a moment has expired
)

// player runs a scenario with the Go client. What came of steps is kept by its name.
type player struct {
	at        *server
	c         *client.Client
	own       string // what makes its idempotency keys different from those of others
	begun     map[string]chan outcome
	sessions  map[string]cove.ID
	programs  map[string]cove.PID
	outputs   map[string]cove.OutputID
	snapshots map[string]cove.ID
	lists     map[string]cove.ID // the last of each
	archives  map[string][]byte
	contexts  map[string]string
	watches   map[string]*watch
	conns     map[string]net.Conn
}

// outcome is what came of a step.
type outcome struct {
	got any
	err error
}

// play runs a scenario with the Go client.
func play(t *testing.T, at *server, s scenario) {
	ctx, cancel := context.WithTimeout(t.Context(), playTime)
	defer cancel()
	key := at.key
	if s.Key != "" {
		key = s.Key
	}
	c, err := client.New(at.URL, key, client.WithAutoRetry(s.AutoRetry == nil || *s.AutoRetry))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	p := &player{
		at: at, c: c, own: rand.Text(), begun: map[string]chan outcome{}, sessions: map[string]cove.ID{}, programs: map[string]cove.PID{}, outputs: map[string]cove.OutputID{},
		snapshots: map[string]cove.ID{}, lists: map[string]cove.ID{}, archives: map[string][]byte{}, contexts: map[string]string{}, watches: map[string]*watch{}, conns: map[string]net.Conn{},
	}
	defer p.letGo(ctx)
	for i, one := range s.Steps {
		if why := p.judged(ctx, one); why != "" {
			t.Fatalf("step %d, %s: %s", i+1, one.Do, why)
		}
	}
}

// letGo ends what a scenario left.
func (p *player) letGo(ctx context.Context) {
	for _, w := range p.watches {
		w.end()
	}
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	for _, id := range p.sessions {
		_, _ = p.c.Sessions().Close(ctx, id, false) // many have ended
	}
}

// judged makes a step and returns what is wrong with what came of it, or "".
func (p *player) judged(ctx context.Context, one step) string {
	if one.Begin != "" {
		came, aside := make(chan outcome, 1), p.aside()
		p.begun[one.Begin] = came
		go func() {
			got, err := aside.do(ctx, one)
			came <- outcome{got, err}
		}()
		return ""
	}
	if one.Do == "end" {
		select {
		case came := <-p.begun[one.Of]:
			return judge(one, came.got, came.err)
		case <-ctx.Done():
			return "it does not end"
		}
	}
	got, err := p.do(ctx, one)
	return judge(one, got, err)
}

// judge compares what came of a step with what must.
func judge(one step, got any, err error) string {
	if one.Fail != nil {
		if err == nil {
			return fmt.Sprintf("did not fail: %v", got)
		}
		want := map[string]any{"code": one.Fail["code"], "reason": one.Fail["reason"]}
		reason := cove.ReasonOf(err)
		if one.Fail["reason"] == "" {
			reason = ""
		}
		return lacks(want, map[string]any{"code": string(cove.CodeOf(err)), "reason": reason})
	}
	if err != nil {
		return err.Error()
	}
	if one.Want == nil {
		return ""
	}
	text, err := json.Marshal(got)
	if err != nil {
		return err.Error()
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return err.Error()
	}
	return lacks(one.Want, plain)
}

// aside is a player that knows what this one does, and whose names are its own.
func (p *player) aside() *player {
	other := *p
	other.sessions, other.programs, other.contexts = maps.Clone(p.sessions), maps.Clone(p.programs), maps.Clone(p.contexts)
	other.outputs = map[string]cove.OutputID{}
	return &other
}

func (p *player) do(ctx context.Context, s step) (any, error) {
	switch s.Do {
	case "restart":
		return nil, p.at.restart(s.Text)
	case "open", "get", "close", "sessions", "expired", "stop", "resume_stopped", "pause", "resume", "renew", "snapshot", "snapshots", "fork", "forget":
		return p.session(ctx, s)
	case "write", "read", "stat", "list", "mkdir", "move", "remove", "appears":
		return p.file(ctx, s)
	case "archive", "unpack", "watch", "changed", "unwatch", "link":
		return p.stream(ctx, s)
	case "run", "stream", "output":
		return p.run(ctx, s)
	case "code", "context", "contexts", "restart_context", "interrupt", "close_context":
		return p.code(ctx, s)
	case "dial", "send", "recv", "port_link":
		return p.port(ctx, s)
	}
	return p.background(ctx, s)
}

func asked[W any](s step) (w W, err error) {
	if len(s.Request) > 0 {
		err = json.Unmarshal(s.Request, &w)
	}
	return w, err
}

func (p *player) session(ctx context.Context, s step) (any, error) {
	id := p.sessions[s.In]
	var made *cove.Session
	var err error
	switch s.Do {
	case "open":
		made, err = p.open(ctx, s)
	case "get":
		made, err = p.c.Sessions().Get(ctx, cove.ID(s.ID))
	case "stop":
		made, err = p.c.Sessions().Stop(ctx, id)
	case "resume_stopped":
		made, err = p.c.Sessions().Start(ctx, id)
	case "pause":
		made, err = p.c.Snapshots().Pause(ctx, id)
	case "resume":
		made, err = p.c.Snapshots().Resume(ctx, id)
	case "renew":
		made, err = p.c.Sessions().Renew(ctx, id, time.Duration(s.Minutes*float64(time.Minute)))
	case "fork":
		made, err = p.c.Snapshots().Fork(ctx, id, cove.ForkRequest{IdempotencyKey: p.once(s)})
	default:
		return p.other(ctx, s, id)
	}
	if err != nil {
		return nil, err
	}
	answer := with(wire.SessionOf(made), map[string]any{
		"known_as": nameOf(p.sessions, made.ID), "minutes_left": math.Round(time.Until(made.ExpiresAt).Minutes()),
	})
	if s.As != "" {
		p.sessions[s.As] = made.ID
	}
	return answer, nil
}

// nameOf is the name that something was given by an earlier step, or "".
func nameOf[V comparable](named map[string]V, value V) string {
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if named[name] == value {
			return name
		}
	}
	return ""
}

// with is an answer with more beside it.
func with(answer any, more map[string]any) map[string]any {
	text, _ := json.Marshal(answer) // texts and numbers always are JSON
	_ = json.Unmarshal(text, &more)
	return more
}

// once is the idempotency key of a step.
func (p *player) once(s step) string {
	if s.Once == "" {
		return ""
	}
	return s.Once + p.own
}

func (p *player) open(ctx context.Context, s step) (*cove.Session, error) {
	w, err := asked[wire.OpenRequest](s)
	if err != nil {
		return nil, err
	}
	req, err := w.Cove()
	if err != nil {
		return nil, err
	}
	req.IdempotencyKey = p.once(s)
	if s.Snapshot != "" {
		req.Spec.Snapshot = p.snapshots[s.Snapshot]
	}
	return p.c.Sessions().Open(ctx, req)
}

func (p *player) other(ctx context.Context, s step, id cove.ID) (any, error) {
	switch s.Do {
	case "close":
		_, err := p.c.Sessions().Close(ctx, id, false)
		return nil, err
	case "sessions":
		return p.list(ctx, s)
	case "snapshots":
		names := []string{}
		for snap, err := range p.c.Snapshots().List(ctx, cove.SnapshotFilter{Session: id}) {
			if err != nil {
				return nil, err
			}
			names = append(names, snap.Name)
		}
		slices.Sort(names)
		return map[string]any{"names": names}, nil
	case "snapshot":
		snap, err := p.c.Snapshots().Snapshot(ctx, id, cove.SnapshotRequest{Name: s.Text, IdempotencyKey: p.once(s)})
		if err != nil {
			return nil, err
		}
		answer := with(wire.SnapshotOf(snap), map[string]any{"known_as": nameOf(p.snapshots, snap.ID)})
		p.snapshots[s.As] = snap.ID
		return answer, nil
	case "forget":
		return nil, p.c.Snapshots().Delete(ctx, p.snapshots[s.Of])
	}
	return nil, p.expired(ctx, id)
}

func (p *player) list(ctx context.Context, s step) (any, error) {
	filter := cove.SessionFilter{
		Project: s.Filter["project_name"], User: s.Filter["user_id"], Thread: s.Filter["thread_id"], State: cove.State(s.Filter["status"]),
		Limit: s.Limit, After: p.lists[s.After],
	}
	known := []string{}
	for one, err := range p.c.Sessions().List(ctx, filter) {
		if err != nil {
			return nil, err
		}
		known = append(known, nameOf(p.sessions, one.ID))
		if s.As != "" {
			p.lists[s.As] = one.ID
		}
	}
	return map[string]any{"count": len(known), "known_as": known}, nil
}

// expired waits until a session's time is over.
func (p *player) expired(ctx context.Context, id cove.ID) error {
	ctx, cancel := context.WithTimeout(ctx, expireTime)
	defer cancel()
	return until(ctx, func() bool {
		_, err := p.c.Sessions().Get(ctx, id)
		return cove.ReasonOf(err) == cove.ReasonSessionExpired
	})
}

// until looks again and again whether something is so.
func until(ctx context.Context, so func() bool) error {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
	return nil
}
