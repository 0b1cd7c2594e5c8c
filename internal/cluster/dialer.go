package cluster

import (
	"net"
	"time"
)

// dialer makes connections to nodes that end when the other side has not been heard
// of for a lease: who waits for an answer of a node that was cut off would else wait
// for as long as the kernel believes in it.
func dialer(lease time.Duration) *net.Dialer {
	const probes = 3
	part := max(time.Second, (lease / (probes + 1)).Truncate(time.Second))
	return &net.Dialer{
		Timeout:         lease / probes,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: part, Interval: part, Count: probes},
		Control:         unheard(lease),
	}
}
