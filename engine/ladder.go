package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// Ladder asks providers, all at once and each for a bounded time, what they can
// do, and returns the rows of cove doctor: by what stands between a sandbox and
// the host, weakest first, and then by name. First is the provider that makes
// sandboxes, and then are those that do so where it is not ready, in their order.
func Ladder(ctx context.Context, list []cove.Provider, first string, then []string) []cove.ProviderReport {
	return ladder(ctx, list, first, then, func(ctx context.Context, p cove.Provider) (cove.Capabilities, error) {
		ctx, cancel := context.WithTimeout(ctx, probeTime)
		defer cancel()
		return p.Probe(ctx)
	})
}

// probeGrace is what a provider may take beyond its time, before nobody waits for
// it any more.
const probeGrace = time.Second

func ladder(ctx context.Context, list []cove.Provider, first string, then []string, probe func(context.Context, cove.Provider) (cove.Capabilities, error)) []cove.ProviderReport {
	rows := make([]cove.ProviderReport, len(list))
	var all sync.WaitGroup
	for i, p := range list {
		all.Go(func() {
			rows[i] = cove.ProviderReport{
				Name: p.Name(), Default: p.Name() == first, Fallback: slices.Index(then, p.Name()) + 1, Capabilities: patiently(ctx, p, probe),
			}
			plain(&rows[i].Capabilities.Isolation)
		})
	}
	all.Wait()
	slices.SortFunc(rows, func(a, b cove.ProviderReport) int {
		return cmp.Or(cmp.Compare(rung(a), rung(b)), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

// patiently probes one provider, and does not wait for one that never answers.
func patiently(ctx context.Context, p cove.Provider, probe func(context.Context, cove.Provider) (cove.Capabilities, error)) cove.Capabilities {
	answer := make(chan cove.Capabilities, 1)
	go func() {
		caps, err := probe(ctx, p)
		if err != nil {
			caps.Ready, caps.Why, caps.Remedy = false, "it cannot be probed: "+cove.MessageOf(err), cove.RemedyOf(err)
		}
		answer <- caps
	}()
	late := time.NewTimer(probeTime + probeGrace)
	defer late.Stop()
	select {
	case caps := <-answer:
		return caps
	case <-late.C:
		return cove.Capabilities{Why: "it does not say what it can do within " + probeTime.String(), Remedy: "see whether what it drives still answers"}
	}
}

// plain says none of limits that a provider says nothing about, because it is not
// ready: readers know three words.
func plain(i *cove.Isolation) {
	for _, limit := range []*cove.Enforcement{&i.Network, &i.Memory, &i.CPU, &i.PIDs, &i.Disk, &i.Files} {
		*limit = cmp.Or(*limit, cove.Absent)
	}
}

// rung is where a provider stands: one that does not say stands last.
func rung(r cove.ProviderReport) int {
	all := cove.Boundaries()
	i := slices.Index(all, r.Capabilities.Isolation.Boundary)
	if i < 0 {
		return len(all)
	}
	return i
}
