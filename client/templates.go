package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

type templates struct{ c *Client }

// at is the path of a template, or of what is below it.
func (t templates) at(name, rest string) path { return path{"/api/templates/", name, rest} }

// sharedQuery says that a call is about a template that is shared.
func sharedQuery(shared bool) url.Values {
	if shared {
		return url.Values{"shared": {"true"}}
	}
	return nil
}

// List implements [cove.Templates].
func (t templates) List(ctx context.Context) iter.Seq2[cove.Template, error] {
	return list(ctx, t.c, ask{method: http.MethodGet, path: path{"/api/templates"}}, 0, plain(wire.Template.Cove))
}

// Build implements [cove.Templates].
func (t templates) Build(ctx context.Context, req cove.TemplateRequest) (*cove.Template, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	up := newUpload(ctx, func(w io.Writer) error {
		_, err := io.Copy(w, req.Files)
		return err
	})
	a := ask{method: http.MethodPut, path: t.at(req.Name, ""), query: sharedQuery(req.Shared), stream: up, header: map[string]string{"Content-Type": "application/x-tar"}}
	for f, err := range t.c.follow(ctx, a, wire.OnBuilt) {
		if err != nil {
			return nil, up.blame(ctx, err)
		}
		if err := t.c.chunk(f, req.OnOutput); err != nil {
			return nil, err
		}
		if f.name == wire.OnBuilt {
			w, err := parse[wire.Template](t.c, f)
			if err != nil {
				return nil, err
			}
			return new(w.Cove()), nil
		}
	}
	return nil, up.blame(ctx, io.ErrUnexpectedEOF)
}

// Tag implements [cove.Templates].
func (t templates) Tag(ctx context.Context, name, as string, shared bool) (*cove.Template, error) {
	w, err := get[wire.Template](ctx, t.c, ask{method: http.MethodPost, path: t.at(name, "/tags"), body: wire.TemplateTag{As: as, Shared: shared}})
	if err != nil {
		return nil, err
	}
	return new(w.Cove()), nil
}

// Delete implements [cove.Templates].
func (t templates) Delete(ctx context.Context, name string, shared bool) error {
	return t.c.tell(ctx, ask{method: http.MethodDelete, path: t.at(name, ""), query: sharedQuery(shared)})
}
