package measure

import (
	"context"
	"errors"

	"github.com/cove-sandbox/cove"
)

// Memory is what an idle sandbox keeps.
type Memory struct {
	Sessions  int        `json:"sessions"`  // that were alive at once
	Private   cove.Bytes `json:"private"`   // of one: memory shared with no other process
	Share     cove.Bytes `json:"share"`     // of one: that, and its part of what it shares
	Processes float64    `json:"processes"` // of one

	// What the provider itself keeps, however many sandboxes there are.
	ProviderPrivate   cove.Bytes `json:"provider_private"`
	ProviderProcesses int        `json:"provider_processes"`
}

// Idle makes that many sandboxes, runs `true` once in each, and counts what
// their processes keep while they do nothing. With one alone, everything that
// sandboxes share would count as its own.
func (s *Stage) Idle(ctx context.Context, sessions int) (m Memory, err error) {
	before, err := family()
	if err != nil {
		return m, err
	}
	boxes := make([]cove.Sandbox, 0, sessions)
	defer func() {
		for _, b := range boxes {
			err = errors.Join(err, b.Destroy(context.WithoutCancel(ctx)))
		}
	}()
	for range sessions {
		b, err := s.create(ctx)
		if err != nil {
			return m, err
		}
		boxes = append(boxes, b)
		if err := runTrue(ctx, b); err != nil {
			return m, err
		}
	}
	return memoryOf(sessions, before, s.own)
}

// memoryOf counts what sessions keep: the processes that are there now and were not
// before. Those of own are the provider's.
func memoryOf(sessions int, before, own map[process]bool) (m Memory, err error) {
	after, err := family()
	if err != nil {
		return m, err
	}
	theirs, err := total(after, func(p process) bool { return !before[p] })
	if err != nil {
		return m, err
	}
	its, err := total(after, func(p process) bool { return own[p] })
	n := cove.Bytes(sessions)
	return Memory{
		Sessions: sessions, Private: theirs.private / n, Share: theirs.share / n, Processes: float64(theirs.count) / float64(sessions),
		ProviderPrivate: its.private, ProviderProcesses: its.count,
	}, err
}

// holding is what some processes keep.
type holding struct {
	private, share cove.Bytes
	count          int
}

func total(all map[process]bool, counts func(process) bool) (h holding, err error) {
	for p := range all {
		if !counts(p) {
			continue
		}
		private, share, err := p.memory()
		if err != nil {
			return h, cove.Wrap(cove.Unavailable, err, "the memory of a sandbox cannot be read").Remedy("measure as root")
		}
		h.private += private
		h.share += share
		h.count++
	}
	return h, nil
}
