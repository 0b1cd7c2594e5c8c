//go:build lean

package daemon

import (
	"context"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
)

// openBucket refuses: the lean program is no server.
func (*assembly) openBucket(context.Context, config.Config, site) (cove.Archives, error) {
	return nil, cove.InvalidField("COVE_ARCHIVE_URL", "asks for a bucket, which this build cannot do; use file:///a/directory or unset it")
}
