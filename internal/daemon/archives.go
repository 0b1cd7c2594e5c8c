package daemon

import (
	"context"
	"net/url"
	"path/filepath"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/archive"
	"github.com/cove-sandbox/cove/internal/config"
)

// openArchives makes a place for the workspaces of stopped sessions: in COVE_HOME, in
// another directory, or in a bucket. What a run keeps ends with it, so it stays here.
func (a *assembly) openArchives(ctx context.Context, cfg config.Config, at site) (cove.Archives, error) {
	if at.join != nil && cfg.Redis.URL != "" {
		return archive.Open(filepath.Join(at.dir, "archives")) // the rest is for those that move
	}
	u, err := url.Parse(cfg.ArchiveURL)
	switch {
	case err == nil && u.Scheme == "s3" && at.run == nil:
		return a.openBucket(ctx, cfg, at)
	case err != nil || u.Scheme != "file":
		return archive.Open(filepath.Join(at.dir, "archives"))
	}
	d, err := archive.Open(u.Path)
	if err != nil {
		return nil, cove.InvalidField("COVE_ARCHIVE_URL", "%s", cove.MessageOf(err))
	}
	return d, nil
}
