package sdk_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"iter"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

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
		return below(ctx, files, s)
	case "appears":
		return nil, until(ctx, func() bool {
			_, err := files.Stat(ctx, s.Path)
			return err == nil
		})
	case "mkdir":
		return nil, files.Mkdir(ctx, s.Path)
	case "move":
		return nil, files.Move(ctx, s.Path, s.To)
	}
	return nil, files.Remove(ctx, s.Path)
}

// below is what is below a directory.
func below(ctx context.Context, files cove.Files, s step) (any, error) {
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

// watch is a watch of which one change is taken after the other.
type watch struct {
	next func() (cove.Change, error, bool)
	end  func()
}

func (p *player) stream(ctx context.Context, s step) (any, error) {
	files := p.c.Files(p.sessions[s.In])
	switch s.Do {
	case "archive":
		r, err := files.Archive(ctx, cmp.Or(s.Path, cove.WorkspacePath))
		if err != nil {
			return nil, err
		}
		defer func() { _ = r.Close() }() // only read
		p.archives[s.As], err = io.ReadAll(r)
		return nil, err
	case "unpack":
		tar := p.archives[s.Of]
		if s.Of == "" {
			tar = []byte(s.Text)
		}
		return nil, files.Unpack(ctx, s.Path, bytes.NewReader(tar))
	case "watch":
		ctx, cancel := context.WithCancel(ctx)
		next, end := iter.Pull2(files.Watch(ctx, cmp.Or(s.Path, cove.WorkspacePath)))
		p.watches[s.As] = &watch{next, func() { cancel(); end() }}
		_, err, _ := next() // that it is looked for changes
		return nil, err
	case "changed":
		for {
			change, err, _ := p.watches[s.Of].next()
			if err != nil || change.Path == s.Path && string(change.Kind) == s.Text {
				return nil, err
			}
		}
	case "unwatch":
		p.watches[s.Of].end()
		return nil, nil
	}
	return p.link(ctx, s)
}

// link makes a link to a file, and uses it as somebody without a key: it reads, or with a
// text it replaces.
func (p *player) link(ctx context.Context, s step) (any, error) {
	asked, method := p.c.Links().Download, http.MethodGet
	if s.Text != "" {
		asked, method = p.c.Links().Upload, http.MethodPut
	}
	link, err := asked(ctx, cove.FileLink{Session: p.sessions[s.In], Path: s.Path})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, link.URL, strings.NewReader(s.Text))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	data, err := io.ReadAll(resp.Body)
	return map[string]any{"http": resp.StatusCode, "text": string(data)}, err
}
