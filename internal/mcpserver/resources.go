package mcpserver

import (
	"context"
	"errors"
	"net/url"
	"path"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
)

// Files of sandboxes are resources: cove://<session>/workspace/<path>.
const (
	scheme      = "cove"
	fileURIs    = "cove://{session}/workspace/{+path}"
	maxResource = 1 << 20
	maxListed   = 200
	listedDepth = 2
)

func (f *face) addResources() {
	f.server.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "workspace", Title: "Files of a sandbox", URITemplate: fileURIs,
		Description: "A file in the workspace of a session, up to 1 MiB.",
	}, f.readResource)
}

// uriOf names a file of a session. What is not in the workspace has no name.
func uriOf(session, name string) string {
	u := url.URL{Scheme: scheme, Host: session, Path: name}
	return u.String()
}

// fileAt is the session and the path that a resource's name means.
func fileAt(uri string) (cove.ID, string, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != scheme || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", "", mcp.ResourceNotFoundError(uri)
	}
	id, name := cove.ID(u.Host), path.Clean(u.Path)
	if !id.Valid() || !strings.HasPrefix(name, cove.WorkspacePath+"/") {
		return "", "", mcp.ResourceNotFoundError(uri)
	}
	return id, name, nil
}

// visit runs do for a request that is no tool's, as long as its caller may go on.
func (f *face) visit(ctx context.Context, req mcp.Request, do func(context.Context, *peer, caller) error) error {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok {
		return errors.New("a request without a session")
	}
	who := f.callerOf(req)
	p, err := f.meet(session, who)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	ctx, stop := f.Watch(ctx, who.who)
	defer stop()
	return do(ctx, p, who)
}

func (f *face) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	id, name, err := fileAt(uri)
	if err != nil {
		return nil, err
	}
	var data []byte
	err = f.visit(ctx, req, func(ctx context.Context, _ *peer, who caller) error {
		files := who.platform.Files(id)
		info, err := stat(ctx, files, name)
		if err != nil {
			return err
		}
		if info.Size <= maxResource {
			data, err = readUpTo(ctx, files, name, 0, maxResource+1)
		}
		if err == nil && (info.Size > maxResource || len(data) > maxResource) {
			err = cove.Errorf(cove.Invalid, "%s has more than %s", name, cove.Bytes(maxResource)).Remedy("read_file reads it in parts")
		}
		return err
	})
	switch {
	case errors.Is(err, cove.NotFound):
		return nil, mcp.ResourceNotFoundError(uri)
	case err != nil:
		return nil, f.refuse(ctx, err)
	}
	c := &mcp.ResourceContents{URI: uri, MIMEType: kindOf(data)}
	if c.MIMEType == textKind {
		c.Text = strings.ToValidUTF8(string(data), "\uFFFD")
	} else {
		c.Blob = data
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
}

// listResources lists the files of the sandbox in use. Where there is none yet,
// none is made for it.
func (f *face) listResources(ctx context.Context, req *mcp.ListResourcesRequest) (*mcp.ListResourcesResult, error) {
	out := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}}
	err := f.visit(ctx, req, func(ctx context.Context, p *peer, who caller) error {
		id, err := (&call{face: f, peer: p}).current(ctx)
		if err != nil || id == "" {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for info, err := range who.platform.Files(id).List(ctx, cove.WorkspacePath, listedDepth) {
			if err != nil {
				return err
			}
			if !info.Mode.IsRegular() {
				continue
			}
			name := strings.TrimPrefix(info.Path, cove.WorkspacePath+"/")
			out.Resources = append(out.Resources, &mcp.Resource{URI: uriOf(string(id), info.Path), Name: strings.ToValidUTF8(name, "\uFFFD"), Size: int64(info.Size)})
			if len(out.Resources) == maxListed {
				return nil
			}
		}
		return nil
	})
	switch cove.CodeOf(err) { //nolint:exhaustive // others are told
	case "", cove.NotFound, cove.Conflict: // the sandbox has ended or is stopped: it has no files to show
		return out, nil
	}
	return nil, f.refuse(ctx, err)
}
