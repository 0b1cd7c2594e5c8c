package httpapi

import (
	"context"
	"io/fs"
	"net/http"
	"reflect"
	"strconv"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

const octets = "application/octet-stream"

func fileRoutes() []route {
	const files, archive = "/api/sandboxes/{id}/files", "/api/sandboxes/{id}/archive"
	name := param{name: "path", kind: word, must: true, doc: "relative paths start in the workspace"}
	dir := param{name: "path", kind: word, doc: "left out, the workspace"}
	return []route{
		{
			method: http.MethodGet, pattern: files, summary: "Read a file, or the range of it that the Range header or offset and length name", gives: octets,
			deed: deed{status: http.StatusOK, do: (*call).readFile},
			query: []param{
				name, {name: "offset", kind: number, doc: "bytes to leave out"}, {name: "length", kind: number, from: 1, doc: "bytes to read; left out, to the end"},
			},
			headers: []header{{"Range", "one range of bytes, such as bytes=0-99; the answer is 206"}},
		},
		{method: http.MethodHead, pattern: files, summary: "Ask for the size of a file without reading it", gives: octets, deed: deed{status: http.StatusOK, do: (*call).headFile}, query: []param{name}},
		{method: http.MethodPut, pattern: files, needs: []cove.Verb{cove.FileWrite}, summary: "Replace a file; it is whole or not there", takes: octets, deed: act((*call).writeFile), query: []param{name}, headers: []header{modeHeader}},
		{method: http.MethodDelete, pattern: files, summary: "Delete a file or a whole directory", deed: act((*call).removeFile), query: []param{name}},
		{
			method: http.MethodGet, pattern: files + "/list", summary: "List what is below a directory", events: "file, end",
			deed:  deed{answer: reflect.TypeFor[wire.Page[wire.File]](), status: http.StatusOK, do: (*call).listFiles},
			query: append([]param{dir, {name: "depth", kind: number, doc: "levels; left out, 1"}}, pageParams...),
		},
		{method: http.MethodGet, pattern: files + "/stat", summary: "Describe a file", deed: get((*call).stat), query: []param{name}},
		{method: http.MethodPost, pattern: files + "/move", needs: []cove.Verb{cove.FileMove}, summary: "Give a file another name", deed: actOn((*call).moveFile)},
		{method: http.MethodPost, pattern: files + "/mkdir", needs: []cove.Verb{cove.FileMkdir}, summary: "Make a directory and those above it", deed: actOn((*call).mkdir)},
		{method: http.MethodPost, pattern: files + "/tag", needs: []cove.Verb{cove.FileTag}, summary: "Give a file attributes of its own; others that it has stay", deed: actOn((*call).tagFile)},
		{
			method: http.MethodGet, pattern: files + "/watch", summary: "Follow the changes below a directory", events: "change",
			deed: deed{status: http.StatusOK, do: (*call).watch}, query: []param{dir},
		},
		{method: http.MethodGet, pattern: archive, summary: "Read a directory as a tar", gives: tarType, deed: deed{status: http.StatusOK, do: (*call).readArchive}, query: []param{dir}},
		{method: http.MethodPut, pattern: archive, needs: []cove.Verb{cove.FileUnpack}, summary: "Extract a tar into a directory; each file is whole or not there, and those before one that is refused stay", takes: tarType, deed: act((*call).unpack), query: []param{dir}},
	}
}

// dir is the directory that the query names, or the workspace.
func (c *call) dir() string {
	if c.query.has("path") {
		return c.query.text("path")
	}
	return cove.WorkspacePath
}

// fileMode is the mode that the request asks for, or 0644.
func (c *call) fileMode() (fs.FileMode, error) {
	if text := c.r.Header.Get(modeHeader.name); text != "" {
		return wire.ParseMode(text)
	}
	return 0o644, nil
}

func (c *call) writeFile() error {
	mode, err := c.fileMode()
	if err != nil {
		return err
	}
	body := c.upload()
	return body.settle(c.files().Write(c.r.Context(), c.query.text("path"), body, mode))
}

func (c *call) removeFile() error {
	return c.files().Remove(c.r.Context(), c.query.text("path"))
}

func (c *call) listFiles() error {
	depth := 1
	if c.query.has("depth") {
		depth = int(c.query.number("depth"))
	}
	if c.wantsEvents() {
		return c.stream(func(ctx context.Context, e *events) error {
			for f, err := range c.files().List(ctx, c.dir(), depth) {
				if err != nil {
					return err
				}
				_ = e.put(wire.OnFile, "", wire.FileOf(f), later) // texts and numbers always are JSON
			}
			return e.send(wire.OnEnd, "", struct{}{})
		})
	}
	skip, err := c.skip()
	if err != nil {
		return err
	}
	limit := c.pageSize()
	files, more, err := cove.ListPage(c.r.Context(), c.files(), c.dir(), depth, skip, limit)
	if err != nil {
		return err
	}
	p := wire.Page[wire.File]{Items: make([]wire.File, len(files))}
	for i, f := range files {
		p.Items[i] = wire.FileOf(f)
	}
	if more {
		p.NextCursor = strconv.Itoa(skip + limit)
	}
	return c.send(http.StatusOK, p)
}

func (c *call) stat() (wire.File, error) {
	f, err := c.files().Stat(c.r.Context(), c.query.text("path"))
	return wire.FileOf(f), err
}

func (c *call) moveFile(w wire.MoveRequest) error {
	from, to := w.Names()
	return c.files().Move(c.r.Context(), from, to)
}

func (c *call) tagFile(w wire.TagRequest) error {
	return c.files().Tag(c.r.Context(), w.Name(), w.Meta)
}

func (c *call) mkdir(w wire.MkdirRequest) error {
	return c.files().Mkdir(c.r.Context(), w.Name())
}

func (c *call) watch() error {
	return c.stream(func(ctx context.Context, e *events) error {
		for change, err := range c.files().Watch(ctx, c.dir()) {
			if err != nil {
				return err
			}
			_ = e.send(wire.OnChange, "", wire.ChangeOf(change)) // texts always are JSON
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return e.send(wire.OnEnd, "", struct{}{})
	})
}

func (c *call) unpack() error {
	body := c.upload()
	return body.settle(c.files().Unpack(c.r.Context(), c.dir(), body))
}
