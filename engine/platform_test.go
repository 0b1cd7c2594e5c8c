package engine_test

import (
	"path/filepath"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/platformtest"
	"github.com/cove-sandbox/cove/store/sqlite"
)

// TestPlatform runs the suite of the platform against the engine in process.
func TestPlatform(t *testing.T) {
	platformtest.Run(t, func(t *testing.T, o platformtest.Options) platformtest.Harness {
		return openPlatform(newWorld(t), o)
	})
}

// TestPlatformOnSQLite is TestPlatform with records that last.
func TestPlatformOnSQLite(t *testing.T) {
	if testing.Short() {
		t.Skip("the suite runs once with -short")
	}
	platformtest.Run(t, func(t *testing.T, o platformtest.Options) platformtest.Harness {
		w := newWorld(t)
		store, err := sqlite.Open(t.Context(), filepath.Join(w.dir, "cove.db"))
		if err != nil {
			t.Fatal(err)
		}
		w.store = store
		return openPlatform(w, o)
	})
}

// platform is an engine under test, and what it is opened with again.
type platform struct {
	world  *world
	engine *engine.Engine
	set    func(*engine.Config)
}

func openPlatform(w *world, o platformtest.Options) *platform {
	w.t.Helper()
	p := &platform{world: w, set: func(c *engine.Config) {
		c.MaxSessions, c.MaxMemory, c.Evict, c.QueueLength = o.MaxSessions, o.MaxMemory, o.Evict, o.QueueLength
		c.Volumes, c.Shared, c.Flavors = o.Volumes, o.Shared, o.Flavors
		c.OutputBudget, c.OutputKept = o.OutputBudget, o.OutputKept
		c.ExecTimeout, c.MaxFileSize = o.ExecTimeout, o.MaxFileSize
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

func (p *platform) As(who cove.Principal) cove.Platform { return p.engine.As(who) }

func (p *platform) Extras() platformtest.Extras { return platformtest.Fake() }

func (p *platform) Close() { p.world.shut(p.engine, p.world.provider) }

func (p *platform) Restart() error {
	p.Close()
	return p.open()
}
