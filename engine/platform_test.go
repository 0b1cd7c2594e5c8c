package engine_test

import (
	"path/filepath"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/platformtest"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/retry"
	"github.com/cove-sandbox/cove/store/sqlite"
)

// TestPlatform runs the suite of the platform against the engine in process.
func TestPlatform(t *testing.T) {
	platformtest.Run(t, func(t *testing.T, o platformtest.Options) platformtest.Harness {
		return openPlatform(newWorld(t), o, platformtest.Fake())
	})
}

// TestPlatformOnABareHost runs it on a host that can enforce little, with a
// provider that can do no more than it must, and with records on disk.
func TestPlatformOnABareHost(t *testing.T) {
	tier.Full(t, "TestPlatform runs the suite on a host that can enforce everything")
	platformtest.Run(t, func(t *testing.T, o platformtest.Options) platformtest.Harness {
		w := newWorld(t, func(c *fake.Config) {
			c.Powers = []cove.Power{cove.PowerAttach}
			c.Isolation = cove.Isolation{
				Boundary: cove.BoundaryNamespaces, Network: cove.Soft, Memory: cove.Absent,
				CPU: cove.Soft, PIDs: cove.Hard, Disk: cove.Soft, Files: cove.Absent,
			}
		})
		store, err := sqlite.Open(t.Context(), filepath.Join(w.dir, "cove.db"))
		if err != nil {
			t.Fatal(err)
		}
		w.store = store
		return openPlatform(w, o, platformtest.Extras{})
	})
}

// platform is an engine under test, and what it is opened with again.
type platform struct {
	world  *world
	engine *engine.Engine
	extras platformtest.Extras
	set    func(*engine.Config)
	retry  bool
}

func openPlatform(w *world, o platformtest.Options, extras platformtest.Extras) *platform {
	w.t.Helper()
	p := &platform{world: w, extras: extras, retry: o.AutoRetry != nil && *o.AutoRetry, set: func(c *engine.Config) {
		c.MaxSessions, c.MaxMemory, c.Evict, c.QueueLength = o.MaxSessions, o.MaxMemory, o.Evict, o.QueueLength
		c.Volumes, c.Shared, c.Flavors = o.Volumes, o.Shared, o.Flavors
		c.VolumeSize, c.MaxVolumes = o.VolumeSize, o.MaxVolumes
		c.OutputBudget, c.OutputKept = o.OutputBudget, o.OutputKept
		c.ExecTimeout, c.MaxFileSize, c.Prices = o.ExecTimeout, o.MaxFileSize, o.Prices
		if extras.Code == nil {
			c.Kernels = nil
		}
		if extras.Query == nil {
			c.Runners = nil
		}
		if extras.Data == nil {
			c.Datasets, c.Responder = nil, nil
		}
	}}
	if err := p.open(); err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (p *platform) open() (err error) {
	p.engine, err = p.world.tryOpen(p.set)
	return err
}

func (p *platform) As(who cove.Principal) cove.Platform {
	if p.retry {
		return retry.On(p.engine.As(who))
	}
	return p.engine.As(who)
}

func (p *platform) Extras() platformtest.Extras { return p.extras }

func (p *platform) Close() { p.world.shut(p.engine, p.world.provider) }

func (p *platform) Restart() error {
	p.Close()
	return p.open()
}
