//go:build linux

package docker

import (
	"context"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// isGone reports whether a container is not there.
func isGone(err error) bool { return errdefs.IsNotFound(err) }

// isTaken reports whether a name belongs to another container.
func isTaken(err error) bool {
	return err != nil && (errdefs.IsConflict(err) || strings.Contains(err.Error(), "is already in use"))
}

// isLeaving reports whether somebody else removes the container.
func isLeaving(err error) bool {
	return strings.Contains(err.Error(), "removal of container") && strings.Contains(err.Error(), "is already in progress")
}

// awaitGone waits until a container is not there any more. do bounds the waiting,
// ctx is the caller's own.
func (p *Provider) awaitGone(do, ctx context.Context, e *engine, container string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := e.ContainerInspect(do, container, client.ContainerInspectOptions{})
		if isGone(err) {
			return nil
		}
		if err != nil {
			return e.fault(ctx, err, "remove a container")
		}
		select {
		case <-tick.C:
		case <-do.Done():
			return e.fault(ctx, do.Err(), "remove a container")
		}
	}
}
