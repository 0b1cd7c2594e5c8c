//go:build linux

package docker

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
)

// mostStats bounds what an engine says about a container.
const mostStats = 1 << 20

// Usage implements [cove.Sandbox]: the agent counts files and processes, the engine
// the rest.
func (s *sandbox) Usage(ctx context.Context) (cove.Usage, error) {
	u, err := s.link().Usage(ctx)
	if err != nil {
		return u, err
	}
	return s.counted(ctx, u)
}

// counted puts what the engine counts into what the agent said.
func (s *sandbox) counted(ctx context.Context, u cove.Usage) (cove.Usage, error) {
	e, err := s.p.open()
	if err != nil {
		return u, err
	}
	do, cancel := within(ctx, doPatience)
	defer cancel()
	answer, err := e.ContainerStats(do, s.container, client.ContainerStatsOptions{})
	if err != nil {
		return u, e.fault(ctx, err, "count what a container uses")
	}
	defer func() { _ = answer.Body.Close() }()
	var st container.StatsResponse
	if err := json.NewDecoder(io.LimitReader(answer.Body, mostStats)).Decode(&st); err != nil {
		return u, e.fault(ctx, err, "count what a container uses")
	}
	if n := st.CPUStats.CPUUsage.TotalUsage; n > 0 {
		u.CPU = time.Duration(n) //nolint:gosec // nanoseconds
	}
	u.Memory = cove.Bytes(st.MemoryStats.Usage)                                  //nolint:gosec // of a machine
	u.PeakMemory = s.highest(max(u.Memory, cove.Bytes(st.MemoryStats.MaxUsage))) //nolint:gosec // of a machine
	return u, nil
}

// highest remembers the most that was seen.
func (s *sandbox) highest(now cove.Bytes) cove.Bytes {
	for {
		seen := s.peak.Load()
		if seen >= int64(now) {
			return cove.Bytes(seen)
		}
		if s.peak.CompareAndSwap(seen, int64(now)) {
			return now
		}
	}
}

// starvedPatience bounds the question whether the kernel killed somebody.
const starvedPatience = 2 * time.Second

// outOfMemory reports whether the kernel ended a process for want of memory since it was
// asked before.
func (s *sandbox) outOfMemory() bool {
	ctx, cancel := context.WithTimeout(context.Background(), starvedPatience)
	defer cancel()
	n, err := s.conn.Load().Kills(ctx)
	return err == nil && s.starved.Swap(n) < n
}
