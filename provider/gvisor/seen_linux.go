package gvisor

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/mount"
)

// seenDir is where the trees of sandboxes can be found by every user of the host:
// those of sandboxes may be unable to pass what is above the provider's directory. In
// the trees is nothing that the sandboxes do not show.
const seenDir = "/run/cove-gvisor"

// expose shows the trees there, and returns the path.
func (r *roots) expose() (string, error) {
	at := r.exposed()
	err := errors.Join(os.MkdirAll(at, 0o711), os.Chmod(seenDir, 0o711), os.Chmod(at, 0o711), os.Chmod(r.dir, 0o711)) //nolint:gosec // see above
	if err == nil {
		unmountAll(at) // what an earlier process left may be another directory
		err = mount.BindOne(r.dir, at)
	}
	if err != nil {
		return "", cove.Wrap(cove.Unavailable, err, "the roots of sandboxes cannot be shown to their users").Remedy("let root mount below %s", seenDir)
	}
	return at, nil
}

// hide ends that. Sandboxes that live have what they need.
func (r *roots) hide() error {
	unmountAll(r.seen)
	return removeFile(r.seen)
}

// exposed is the path, another one for each directory.
func (r *roots) exposed() string { return filepath.Join(seenDir, groupName(r.dir)) }

// unmountAll unmounts all that lies at a path.
func unmountAll(at string) {
	for unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) == nil {
		continue // one may lie over another
	}
}
