//go:build !linux

package escape

import "errors"

// bait is what only Linux has.
func bait(string) error { return errors.ErrUnsupported }
