package sdk_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func (p *player) run(ctx context.Context, s step) (any, error) {
	id := p.sessions[s.In]
	if s.Do == "output" {
		page, err := p.c.Processes(id).Output(ctx, cmp.Or(cove.OutputID(s.ID), p.outputs[s.Of]), cove.OutputRange{Offset: s.Range.Offset, Limit: s.Range.Limit})
		if err != nil {
			return nil, err
		}
		return wire.OutputPageOf(page), nil
	}
	req, err := p.command(s)
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

func (p *player) command(s step) (cove.ExecRequest, error) {
	w, err := asked[wire.ExecRequest](s)
	if err != nil {
		return cove.ExecRequest{}, err
	}
	req, err := w.Cove()
	req.IdempotencyKey = p.once(s)
	if s.Pieces != nil {
		pieces := make([]io.Reader, len(s.Pieces))
		for i, piece := range s.Pieces {
			pieces[i] = strings.NewReader(piece)
		}
		req.Stdin = io.MultiReader(pieces...)
	}
	return req, err
}

func (p *player) background(ctx context.Context, s step) (any, error) {
	programs, pid := p.c.Processes(p.sessions[s.In]), p.programs[s.Of]
	switch s.Do {
	case "start":
		req, err := p.command(s)
		if err != nil {
			return nil, err
		}
		info, err := programs.Start(ctx, req)
		if err != nil {
			return nil, err
		}
		answer := with(wire.ProcessOf(*info), map[string]any{"known_as": nameOf(p.programs, info.PID)})
		p.programs[s.As] = info.PID
		return answer, nil
	case "processes":
		return p.listed(ctx, programs)
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
	case "follow", "hears":
		var told heard
		for chunk, err := range programs.Connect(ctx, pid, s.Offset) {
			if err != nil {
				return nil, err
			}
			told.take(chunk)
			if s.Do == "hears" && strings.Contains(told.out.String(), s.Text) {
				break
			}
		}
		return told.with(struct{}{}), nil
	}
	return nil, cove.InvalidField("do", "%q is no step", s.Do)
}

// listed is the background programs of a session, by their names.
func (p *player) listed(ctx context.Context, programs cove.Processes) (any, error) {
	all := map[string]any{}
	for info, err := range programs.List(ctx) {
		if err != nil {
			return nil, err
		}
		all[nameOf(p.programs, info.PID)] = map[string]any{"running": info.Running, "tag": info.Tag}
	}
	return all, nil
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
	return with(answer, map[string]any{"streamed_stdout": h.out.String(), "streamed_stderr": h.err.String()})
}

func (p *player) code(ctx context.Context, s step) (any, error) {
	contexts := p.c.Contexts(p.sessions[s.In])
	switch s.Do {
	case "context":
		w, err := asked[wire.ContextRequest](s)
		if err != nil {
			return nil, err
		}
		spec := w.Cove()
		spec.IdempotencyKey = p.once(s)
		made, err := contexts.Open(ctx, spec)
		if err != nil {
			return nil, err
		}
		answer := with(wire.ContextOf(*made), map[string]any{"known_as": nameOf(p.contexts, made.Name)})
		p.contexts[s.As] = made.Name
		return answer, nil
	case "contexts":
		languages := []string{}
		for one, err := range contexts.List(ctx) {
			if err != nil {
				return nil, err
			}
			languages = append(languages, one.Language)
		}
		slices.Sort(languages)
		return map[string]any{"languages": languages}, nil
	case "restart_context":
		return nil, contexts.Restart(ctx, p.contexts[s.Of])
	case "interrupt":
		return nil, contexts.Interrupt(ctx, p.contexts[s.Of])
	case "close_context":
		return nil, contexts.Close(ctx, p.contexts[s.Of])
	}
	w, err := asked[wire.CodeRequest](s)
	if err != nil {
		return nil, err
	}
	req, err := w.Cove()
	if err != nil {
		return nil, err
	}
	req.Context = p.contexts[s.Of]
	r, err := contexts.Run(ctx, req)
	if err != nil {
		return nil, err
	}
	return wire.CodeResultOf(p.sessions[s.In], r), nil
}

func (p *player) port(ctx context.Context, s step) (any, error) {
	id := p.sessions[s.In]
	switch s.Do {
	case "port_link":
		link, err := p.c.Links().Port(ctx, cove.PortLink{Session: id, Port: s.Port})
		if err != nil {
			return nil, err
		}
		return link, nil
	case "dial":
		conn, err := p.c.Ports(id).Dial(ctx, s.Port)
		if err == nil {
			p.conns[s.As] = conn
		}
		return nil, err
	case "send":
		_, err := io.WriteString(p.conns[s.Of], s.Text)
		if half, ok := p.conns[s.Of].(interface{ CloseWrite() error }); err == nil && ok && s.EOF {
			err = half.CloseWrite()
		}
		return nil, err
	}
	data, err := io.ReadAll(p.conns[s.Of])
	return map[string]any{"text": string(data)}, err
}
