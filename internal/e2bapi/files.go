package e2bapi

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/cove-sandbox/cove"
)

// metadataHeader begins the names of headers that are metadata of a file.
const metadataHeader = "X-Metadata-"

// fileRoutes are envd's routes for the bytes of files.
func fileRoutes() map[string]action {
	return map[string]action{
		"GET /files":  (*call).readFile,
		"POST /files": (*call).writeFiles,
	}
}

// statusOf is the status of an error about a file. Two of them clients know beside
// those of all calls.
func statusOf(err error) int {
	switch cove.ReasonOf(err) {
	case cove.ReasonWorkspaceFull:
		return http.StatusInsufficientStorage
	case cove.ReasonFileTooLarge:
		return http.StatusRequestEntityTooLarge
	default:
		return shapeOf(err).status
	}
}

// written is what a client is told of a file that it wrote.
type written struct {
	Name     string            `json:"name"`
	Type     string            `json:"type"`
	Path     string            `json:"path"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// writeFiles replaces one file or many.
func (c *call) writeFiles() error {
	b := c.upload()
	list, err := c.write(b)
	if err = c.settled(b, err); err != nil {
		return err
	}
	c.answer(http.StatusOK, list)
	return nil
}

// settled ends the use of a body. What went wrong is told though the client may still
// be sending.
func (c *call) settled(b *body, err error) error {
	err = b.settle(err)
	if err != nil && !lost(err) {
		status := statusOf(err)
		c.refuse(func() { c.answer(status, apiProblem{status, textOf(err)}) })
	}
	return err
}

// write reads a body that is a file, or a form with files.
func (c *call) write(b *body) ([]written, error) {
	meta, err := metadata(c.r.Header)
	if err != nil {
		return nil, err
	}
	content, err := plain(c.r.Header, b)
	if err != nil {
		return nil, err
	}
	name := c.r.URL.Query().Get("path")
	kind, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "multipart/form-data":
		return c.writeForm(params["boundary"], name, content, meta)
	case err == nil && kind == "application/octet-stream" && name == "":
		return nil, cove.InvalidField("path", "is missing")
	case err == nil && kind == "application/octet-stream":
		one, err := c.writeOne(name, content, meta)
		return []written{one}, err
	}
	return nil, cove.InvalidField("Content-Type", "%q is not understood; send multipart/form-data or application/octet-stream", clip(c.r.Header.Get("Content-Type")))
}

func (c *call) writeForm(boundary, name string, content io.Reader, meta map[string]string) ([]written, error) {
	f, err := formOf(boundary, name, content)
	if err != nil {
		return nil, err
	}
	list := []written{}
	for {
		name, part, err := f.next()
		switch {
		case errors.Is(err, io.EOF) && len(list) == 0:
			return nil, cove.Errorf(cove.Invalid, "the form holds no file").Remedy("send each as a part with the name file")
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, err
		}
		one, err := c.writeOne(name, part, meta)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
}

// writeOne replaces a file. One that is there keeps its mode, and a link leads to what
// is replaced, as where a file is opened and written.
func (c *call) writeOne(name string, content io.Reader, meta map[string]string) (written, error) {
	ctx := c.r.Context()
	asked, err := inward(name)
	if err != nil {
		return written{}, err
	}
	to, mode, err := landing(ctx, c.files(), asked)
	if err != nil {
		return written{}, err
	}
	if err := c.files().Write(ctx, to, content, mode); err != nil {
		return written{}, err
	}
	if len(meta) > 0 {
		if err := c.files().Tag(ctx, to, meta); err != nil {
			return written{}, err
		}
	}
	return written{Name: path.Base(outward(asked)), Type: "file", Path: outward(asked), Metadata: metadataOf(meta)}, nil
}

// landing says where a file lands, and with which mode; 0 is the usual one.
func landing(ctx context.Context, files cove.Files, name string) (string, fs.FileMode, error) {
	info, err := files.Stat(ctx, name)
	for range maxLinks {
		if err != nil || info.Mode&fs.ModeSymlink == 0 {
			break
		}
		if name, err = inward(targetOf(info)); err == nil {
			info, err = files.Stat(ctx, name)
		}
	}
	switch {
	case cove.CodeOf(err) == cove.NotFound && !lost(err):
		return name, 0, nil
	case err != nil:
		return "", 0, err
	case info.Mode.IsDir():
		return "", 0, cove.InvalidField("path", "%.200q is a directory", outward(name))
	case !info.Mode.IsRegular():
		return "", 0, cove.InvalidField("path", "%.200q is not a file that can be written", outward(name))
	}
	return name, info.Mode.Perm(), nil
}

// metadata returns the attributes that the headers of an upload ask for.
func metadata(header http.Header) (map[string]string, error) {
	meta := map[string]string{}
	for name, values := range header {
		key, ok := strings.CutPrefix(name, metadataHeader)
		if !ok {
			continue
		}
		if len(values) != 1 {
			return nil, cove.InvalidField(clip(name), "is there more than once")
		}
		meta[metaPrefix+strings.ToLower(key)] = values[0]
	}
	if len(meta) == 0 {
		return nil, nil //nolint:nilnil // no metadata is not an error
	}
	return meta, cove.CheckMeta(meta)
}
