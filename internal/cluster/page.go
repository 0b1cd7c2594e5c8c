package cluster

import (
	"context"

	"github.com/cove-sandbox/cove"
)

var _ cove.FilePager = files{}

// ListPage implements [cove.FilePager].
func (f files) ListPage(ctx context.Context, dir string, depth, skip, limit int) (list []cove.FileInfo, more bool, err error) {
	list, err = on(ctx, f.v, f.id, func(at cove.Platform) (page []cove.FileInfo, err error) {
		page, more, err = cove.ListPage(ctx, at.Files(f.id), dir, depth, skip, limit)
		return page, err
	})
	return list, more, err
}
