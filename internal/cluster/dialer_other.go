//go:build !linux

package cluster

import (
	"syscall"
	"time"
)

// unheard does nothing where the kernel has no such bound: probes end an idle
// connection there, and the kernel's own patience one with something on its way.
func unheard(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
