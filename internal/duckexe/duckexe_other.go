//go:build !linux

package duckexe

import (
	"io"

	"github.com/cove-sandbox/cove"
)

// Installed is Unsupported: what is inside runs in sandboxes of Linux.
func Installed(string) (cove.Tool, error) { return cove.Tool{}, missing() }

// Packed is Unsupported likewise.
func Packed() (io.ReadCloser, error) { return nil, missing() }
