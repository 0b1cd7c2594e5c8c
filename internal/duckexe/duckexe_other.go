//go:build !linux

package duckexe

import "github.com/cove-sandbox/cove"

// Installed is Unsupported: what is inside runs in sandboxes of Linux.
func Installed(string) (cove.Tool, error) { return cove.Tool{}, missing() }

// Packed opens the executable as this build has it inside: compressed by gzip.
func Packed() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(image)), nil }
