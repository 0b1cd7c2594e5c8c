//go:build !lean

package daemon

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/bucket"
	"github.com/cove-sandbox/cove/internal/config"
)

// openBucket opens the archives in the bucket of the settings, and has them swept as
// often as orphans are looked for.
func (a *assembly) openBucket(ctx context.Context, cfg config.Config, at site) (cove.Archives, error) {
	owner, err := bucketOwner(cfg, at)
	if err != nil {
		return nil, err
	}
	archives, err := bucket.Open(ctx, cfg.ArchiveURL, bucket.Config{
		AccessKey: cfg.ArchiveKey.Reveal(), SecretKey: cfg.ArchiveSecret.Reveal(), Owner: owner, Scratch: filepath.Join(at.dir, "spool"),
	})
	if err != nil {
		return nil, cove.Wrap(cove.CodeOf(err), err, "COVE_ARCHIVE_URL: %s", cove.MessageOf(err)).With("field", "COVE_ARCHIVE_URL").
			Reason(cove.ReasonConfiguration).Remedy("%s", cove.RemedyOf(err))
	}
	a.later(archives.Close)
	a.later(keepSwept(context.WithoutCancel(ctx), archives.Sweep, cfg.Maintenance.Orphans, at.logger))
	return archives, nil
}

// bucketOwner is whose the archives in the bucket are: all nodes', or this server's
// alone, which removes what it does not know there. Nodes do not, so that several
// clusters may share them.
func bucketOwner(cfg config.Config, at site) (string, error) {
	if at.join != nil && cfg.Redis.URL != "" {
		return "cluster", nil
	}
	id, _, err := Home{at.dir}.instance()
	return id, err
}

// keepSwept sweeps at intervals, until it is ended.
func keepSwept(ctx context.Context, sweep func(context.Context) (int64, error), every time.Duration, logger *slog.Logger) (end func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			n, err := sweep(ctx)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				logger.WarnContext(ctx, "sweep archives; it is tried again", slog.Any("error", err))
			case n > 0:
				logger.InfoContext(ctx, "archives were swept", slog.Int64("removed", n))
			}
		}
	}()
	return func() error {
		cancel()
		<-ended
		return nil
	}
}
