package sdk_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/wire"
)

const (
	playTime   = 2 * time.Minute // for one scenario
	expireTime = time.Minute     // until a session that has a moment has expired
)

// player runs a scenario with the Go client.
type player struct {
	c         *client.Client
	sessions  map[string]cove.ID
	programs  map[string]cove.PID
	outputs   map[string]cove.OutputID
	snapshots map[string]cove.ID
}

// play runs a scenario with the Go client.
func play(t *testing.T, at server, s scenario) {
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
	p := &player{c, map[string]cove.ID{}, map[string]cove.PID{}, map[string]cove.OutputID{}, map[string]cove.ID{}}
	defer func() {
		for _, id := range p.sessions {
			_, _ = c.Sessions().Close(ctx, id, false) // many have ended
		}
	}()
	for i, one := range s.Steps {
		got, err := p.do(ctx, one)
		if why := judge(one, got, err); why != "" {
			t.Fatalf("step %d, %s: %s", i+1, one.Do, why)
		}
	}
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

func (p *player) do(ctx context.Context, s step) (any, error) {
	switch s.Do {
	case "open", "get", "close", "sessions", "expired", "stop", "resume_stopped", "pause", "resume", "renew", "snapshot", "fork", "forget":
		return p.session(ctx, s)
	case "write", "read", "stat", "list", "mkdir", "move", "remove":
		return p.file(ctx, s)
	case "run", "stream", "output", "code":
		return p.run(ctx, s)
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
		made, err = p.c.Snapshots().Fork(ctx, id, cove.ForkRequest{})
	default:
		return p.other(ctx, s, id)
	}
	if err != nil {
		return nil, err
	}
	if s.As != "" {
		p.sessions[s.As] = made.ID
	}
	return wire.SessionOf(made), nil
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
		count := 0
		for _, err := range p.c.Sessions().List(ctx, cove.SessionFilter{User: s.Filter["user_id"], Thread: s.Filter["thread_id"]}) {
			if err != nil {
				return nil, err
			}
			count++
		}
		return map[string]any{"count": count}, nil
	case "snapshot":
		snap, err := p.c.Snapshots().Snapshot(ctx, id, cove.SnapshotRequest{Name: s.Text})
		if err != nil {
			return nil, err
		}
		p.snapshots[s.As] = snap.ID
		return wire.SnapshotOf(snap), nil
	case "forget":
		return nil, p.c.Snapshots().Delete(ctx, p.snapshots[s.Of])
	}
	return nil, p.expired(ctx, id)
}

// expired waits until a session's time is over.
func (p *player) expired(ctx context.Context, id cove.ID) error {
	ctx, cancel := context.WithTimeout(ctx, expireTime)
	defer cancel()
	for look := time.NewTicker(50 * time.Millisecond); ; {
		if _, err := p.c.Sessions().Get(ctx, id); cove.ReasonOf(err) == cove.ReasonSessionExpired {
			look.Stop()
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}

func (p *player) file(ctx context.Context, s step) (any, error) {
	files := p.c.Files(p.sessions[s.In])
	switch s.Do {
	case "write":
		data := s.Base64
		if data == nil {
			data = []byte(strings.Repeat(s.Text, max(1, s.Times)))
		}
		mode, err := wire.ParseMode(cmp.Or(s.Mode, "0644"))
		if err != nil {
			return nil, err
		}
		return nil, files.Write(ctx, s.Path, bytes.NewReader(data), mode)
	case "read":
		r, err := files.Read(ctx, s.Path, s.Offset, s.Length)
		if err != nil {
			return nil, err
		}
		defer func() { _ = r.Close() }() // only read
		data, err := io.ReadAll(r)
		if utf8.Valid(data) {
			return map[string]any{"text": string(data)}, err
		}
		return map[string]any{"base64": data}, err
	case "stat":
		info, err := files.Stat(ctx, s.Path)
		return wire.FileOf(info), err
	case "list":
		return p.list(ctx, files, s)
	case "mkdir":
		return nil, files.Mkdir(ctx, s.Path)
	case "move":
		return nil, files.Move(ctx, s.Path, s.To)
	}
	return nil, files.Remove(ctx, s.Path)
}

func (p *player) list(ctx context.Context, files cove.Files, s step) (any, error) {
	dir := s.Path
	if dir == "" {
		dir = "/workspace"
	}
	paths := []string{}
	for info, err := range files.List(ctx, dir, max(1, s.Depth)) {
		if err != nil {
			return nil, err
		}
		paths = append(paths, info.Path)
	}
	return map[string]any{"paths": paths}, nil
}

func (p *player) run(ctx context.Context, s step) (any, error) {
	id := p.sessions[s.In]
	switch s.Do {
	case "output":
		page, err := p.c.Processes(id).Output(ctx, p.outputs[s.Of], cove.OutputRange{Offset: s.Range.Offset, Limit: s.Range.Limit})
		if err != nil {
			return nil, err
		}
		return wire.OutputPageOf(page), nil
	case "code":
		w, err := asked[wire.CodeRequest](s)
		if err != nil {
			return nil, err
		}
		req, err := w.Cove()
		if err != nil {
			return nil, err
		}
		r, err := p.c.Contexts(id).Run(ctx, req)
		if err != nil {
			return nil, err
		}
		return wire.CodeResultOf(id, r), nil
	}
	req, err := command(s)
	if err != nil {
		return nil, err
	}
	var told heard
	if s.Do == "stream" {
		req.OnOutput = told.take
	}
	x, err := p.c.Processes(id).Exec(ctx, req)
	if err != nil {
		return nil, err
	}
	p.outputs[s.As] = x.OutputID
	return told.with(wire.ExecutionOf(x)), nil
}

func command(s step) (cove.ExecRequest, error) {
	w, err := asked[wire.ExecRequest](s)
	if err != nil {
		return cove.ExecRequest{}, err
	}
	return w.Cove()
}

func (p *player) background(ctx context.Context, s step) (any, error) {
	programs, pid := p.c.Processes(p.sessions[s.In]), p.programs[s.Of]
	switch s.Do {
	case "start":
		req, err := command(s)
		if err != nil {
			return nil, err
		}
		info, err := programs.Start(ctx, req)
		if err != nil {
			return nil, err
		}
		p.programs[s.As] = info.PID
		return wire.ProcessOf(*info), nil
	case "input":
		return nil, programs.Input(ctx, pid, []byte(s.Text), s.EOF)
	case "signal":
		return nil, programs.Signal(ctx, pid, cove.Signal(s.Text))
	case "resize":
		return nil, programs.Resize(ctx, pid, cove.WindowSize{Cols: s.Cols, Rows: s.Rows})
	case "wait":
		x, err := programs.Wait(ctx, pid)
		if err != nil {
			return nil, err
		}
		return wire.ExecutionOf(x), nil
	case "follow":
		var told heard
		for chunk, err := range programs.Connect(ctx, pid, s.Offset) {
			if err != nil {
				return nil, err
			}
			told.take(chunk)
		}
		return told.with(struct{}{}), nil
	}
	return nil, cove.InvalidField("do", "%q is no step", s.Do)
}

// heard is output as it came.
type heard struct{ out, err bytes.Buffer }

func (h *heard) take(c cove.Chunk) {
	if c.Stream == cove.Stderr {
		h.err.Write(c.Data)
		return
	}
	h.out.Write(c.Data)
}

// with is an answer with what was heard beside it.
func (h *heard) with(answer any) map[string]any {
	all := map[string]any{"streamed_stdout": h.out.String(), "streamed_stderr": h.err.String()}
	text, _ := json.Marshal(answer) // texts and numbers always are JSON
	_ = json.Unmarshal(text, &all)
	return all
}
